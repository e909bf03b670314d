//! Questions about network interfaces by ioctl (netdevice(7)): there is the loopback interface and no other.

use raddle_mem::GuestAddr;

use super::{Address, Family, socket_of};
use crate::call::{Call, SysResult};
use crate::errno::Errno;
use crate::files::open::OpenId;

const SIOCGIFNAME: u32 = 0x8910;
const SIOCGIFCONF: u32 = 0x8912;
const SIOCGIFFLAGS: u32 = 0x8913;
const SIOCGIFADDR: u32 = 0x8915;
const SIOCGIFNETMASK: u32 = 0x891B;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCGIFHWADDR: u32 = 0x8927;
const SIOCGIFINDEX: u32 = 0x8933;
const SIOCINQ_ATMARK: u32 = 0x8905;

/// Length of `struct ifreq`.
const REQUEST: usize = 40;
/// IFF_UP | IFF_LOOPBACK | IFF_RUNNING.
const FLAGS: u16 = 0x49;

/// Answers a question about interfaces; none if it is not one.
pub(crate) fn interface_ioctl(
    call: &mut Call<'_>,
    open: OpenId,
    request: u32,
) -> Option<SysResult> {
    let inode = call.kernel.state.files.open_file(open).inode;
    socket_of(&call.kernel.state.files, inode)?;
    Some(match request {
        SIOCGIFCONF => list(call),
        SIOCGIFNAME => by_index(call),
        SIOCGIFFLAGS | SIOCGIFADDR | SIOCGIFNETMASK | SIOCGIFMTU | SIOCGIFHWADDR | SIOCGIFINDEX => {
            by_name(call, request)
        }
        SIOCINQ_ATMARK => call
            .write_bytes(call.args[2], &0_u32.to_le_bytes())
            .map(|()| 0)
            .map_err(Into::into),
        _ => return None,
    })
}

fn name() -> Vec<u8> {
    let mut bytes = b"lo".to_vec();
    bytes.resize(16, 0);
    bytes
}

/// `struct ifconf`: a length and an array of requests.
fn list(call: &mut Call<'_>) -> SysResult {
    let addr = call.args[2];
    let room = call.kernel.read_u32(call.tid, addr)?;
    let array = call.kernel.read_u64(call.tid, addr.wrapping_add(8))?;
    let mut record = name();
    record.extend(Address::loopback(Family::Inet, 0).encode());
    record.resize(REQUEST, 0);
    let mut written = 40_u32;
    if array != 0 {
        if room < written {
            written = 0;
        } else {
            call.kernel
                .write_user(call.tid, GuestAddr(array), &record)?;
        }
    }
    call.write_bytes(addr, &written.to_le_bytes())?;
    Ok(0)
}

fn by_index(call: &mut Call<'_>) -> SysResult {
    let addr = call.args[2];
    if call.kernel.read_u32(call.tid, addr.wrapping_add(16))? != 1 {
        return Err(Errno::ENODEV.into());
    }
    call.write_bytes(addr, &name())?;
    Ok(0)
}

fn by_name(call: &mut Call<'_>, request: u32) -> SysResult {
    let addr = call.args[2];
    let asked: [u8; 16] = call.read_bytes(addr)?;
    if !asked.starts_with(b"lo\0") {
        return Err(Errno::ENODEV.into());
    }
    let answer = match request {
        SIOCGIFFLAGS => FLAGS.to_le_bytes().to_vec(),
        SIOCGIFADDR => Address::loopback(Family::Inet, 0).encode(),
        SIOCGIFNETMASK => Address::Inet {
            ip: [255, 0, 0, 0],
            port: 0,
        }
        .encode(),
        SIOCGIFMTU => 65536_u32.to_le_bytes().to_vec(),
        SIOCGIFINDEX => 1_u32.to_le_bytes().to_vec(),
        // ARPHRD_LOOPBACK and an address of zeros.
        _ => [772_u16.to_le_bytes().to_vec(), vec![0; 14]].concat(),
    };
    call.write_bytes(addr.wrapping_add(16), &answer)?;
    Ok(0)
}
