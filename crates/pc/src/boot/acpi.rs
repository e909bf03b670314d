//! The tables by which a kernel learns what hardware there is (ACPI 6.4): processors, the I/O controller, COM1.
//!
//! The machine calls itself hardware-reduced, so that no kernel looks for a PIC, a PIT or a power button.

use raddle_stdx::width::{low_u8, low_u32, to_u64};

use crate::devices::{IOAPIC_BASE, LAPIC_BASE};

/// Where the tables lie: in the hole below one mebibyte, which is no RAM to the kernel.
pub const ACPI_BASE: u64 = 0x000E_0000;

const HARDWARE_REDUCED: u32 = 1 << 20;
/// WBINVD works.
const WBINVD: u32 = 1 << 0;
/// No VGA, no MSI.
const BOOT_ARCHITECTURE: u16 = (1 << 2) | (1 << 3);
const HEADER: usize = 36;
const FADT_SIZE: usize = 276;

/// All tables, to be placed at [`ACPI_BASE`]; the root pointer is first.
pub fn tables(cpus: usize) -> Vec<u8> {
    const ROOT_POINTER: usize = 36;
    let mut area = vec![0; 64];
    let mut place = |table: &[u8]| {
        let at = ACPI_BASE + to_u64(area.len());
        area.extend_from_slice(table);
        area.resize(area.len().next_multiple_of(16), 0);
        at
    };
    let dsdt = place(&dsdt());
    let fadt = place(&fadt(dsdt));
    let madt = place(&madt(cpus));
    let xsdt = place(&table(
        b"XSDT",
        1,
        [fadt, madt].map(u64::to_le_bytes).as_flattened(),
    ));
    let mut root = Vec::with_capacity(ROOT_POINTER);
    root.extend_from_slice(b"RSD PTR \0RADDLE\x02");
    root.extend_from_slice(&[0; 4]);
    root.extend_from_slice(&36_u32.to_le_bytes());
    root.extend_from_slice(&xsdt.to_le_bytes());
    root.extend_from_slice(&[0; 4]);
    root[8] = checksum(&root[..20]);
    root[32] = checksum(&root);
    area[..ROOT_POINTER].copy_from_slice(&root);
    area
}

/// The byte that makes the sum zero.
fn checksum(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_neg()
}

/// A table with its header.
fn table(signature: &[u8; 4], revision: u8, body: &[u8]) -> Vec<u8> {
    let length = low_u32(to_u64(HEADER + body.len()));
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(signature);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[revision, 0]);
    bytes.extend_from_slice(b"RADDLERADDLEPC\x01\0\0\0RDDL\x01\0\0\0");
    bytes.extend_from_slice(body);
    bytes[9] = checksum(&bytes);
    bytes
}

fn fadt(dsdt: u64) -> Vec<u8> {
    let mut body = vec![0; FADT_SIZE - HEADER];
    let mut put = |offset: usize, bytes: &[u8]| {
        body[offset - HEADER..offset - HEADER + bytes.len()].copy_from_slice(bytes);
    };
    put(40, &low_u32(dsdt).to_le_bytes());
    put(109, &BOOT_ARCHITECTURE.to_le_bytes());
    put(112, &(HARDWARE_REDUCED | WBINVD).to_le_bytes());
    put(131, &[4]);
    put(140, &dsdt.to_le_bytes());
    table(b"FACP", 6, &body)
}

fn madt(cpus: usize) -> Vec<u8> {
    const LOCAL: u8 = 0;
    const IO: u8 = 1;
    let mut body = Vec::new();
    body.extend_from_slice(&low_u32(LAPIC_BASE).to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    for cpu in 0..cpus {
        let id = low_u8(to_u64(cpu));
        body.extend_from_slice(&[LOCAL, 8, id, id, 1, 0, 0, 0]);
    }
    body.extend_from_slice(&[IO, 12, 0, 0]);
    body.extend_from_slice(&low_u32(IOAPIC_BASE).to_le_bytes());
    body.extend_from_slice(&[0; 4]);
    table(b"APIC", 3, &body)
}

/// `Scope (\_SB) { Device (COM1) { _HID PNP0501, _UID 1, _CRS: ports 0x3F8..0x400, interrupt 4 (edge, high) } }`
fn dsdt() -> Vec<u8> {
    let resources = [
        // Port range, 16-bit decode, 0x3F8 to 0x3F8, no alignment, eight ports.
        &[0x47, 0x01, 0xF8, 0x03, 0xF8, 0x03, 0x00, 0x08][..],
        // Extended interrupt: consumer, edge, active high, exclusive; one number.
        &[0x89, 0x06, 0x00, 0x03, 0x01, 0x04, 0x00, 0x00, 0x00],
        &[0x79, 0x00],
    ]
    .concat();
    let size = [0x0A, low_u8(to_u64(resources.len()))];
    let settings = [&[0x11][..], &packed(&[&size[..], &resources].concat())].concat();
    let device = [
        b"COM1".as_slice(),
        b"\x08_HID\x0C\x41\xD0\x05\x01",
        b"\x08_UID\x01",
        b"\x08_CRS",
        &settings,
    ]
    .concat();
    let device = [&[0x5B, 0x82][..], &packed(&device)].concat();
    let scope = [b"\\_SB_".as_slice(), &device].concat();
    table(b"DSDT", 2, &[&[0x10][..], &packed(&scope)].concat())
}

/// Content with its package length in front; the length counts itself.
fn packed(content: &[u8]) -> Vec<u8> {
    let length = content.len() + 1;
    let mut bytes = if length < 0x40 {
        vec![low_u8(to_u64(length))]
    } else {
        let length = length + 1;
        assert!(length < 1 << 12, "no table here is that long");
        vec![
            0x40 | low_u8(to_u64(length & 0xF)),
            low_u8(to_u64(length >> 4)),
        ]
    };
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_sums_to_zero() {
        for table in [dsdt(), fadt(0x1000), madt(4)] {
            assert_eq!(checksum(&table), 0);
            let length = u32::from_le_bytes([table[4], table[5], table[6], table[7]]);
            assert_eq!(length as usize, table.len());
        }
        let area = tables(2);
        assert_eq!(checksum(&area[..20]), 0);
        assert_eq!(checksum(&area[..36]), 0);
    }

    #[test]
    fn each_processor_has_an_entry() {
        assert_eq!(madt(4).len() - madt(1).len(), 3 * 8);
    }
}
