//! Tests of sockets, readiness and event descriptors through their handlers.

use raddle_calls::number;
use raddle_stdx::width::{as_u64, to_u64, to_usize};
use raddle_world::VirtualTime;

use super::file_tests::{BUFFER, CLOSE, READ, WRITE, World};
use crate::call::Trouble;
use crate::errno::Errno;
use crate::files::flags::{O_CREAT, O_NONBLOCK, O_RDWR, POLLHUP, POLLIN, POLLOUT};
use crate::files::testkit::MEMORY;

const POLL: u32 = number("poll");
const PIPE: u32 = number("pipe");
const SENDFILE: u32 = number("sendfile");
const SOCKET: u32 = number("socket");
const CONNECT: u32 = number("connect");
const ACCEPT: u32 = number("accept");
const SENDTO: u32 = number("sendto");
const RECVFROM: u32 = number("recvfrom");
const SENDMSG: u32 = number("sendmsg");
const RECVMSG: u32 = number("recvmsg");
const SHUTDOWN: u32 = number("shutdown");
const BIND: u32 = number("bind");
const LISTEN: u32 = number("listen");
const GETSOCKNAME: u32 = number("getsockname");
const GETPEERNAME: u32 = number("getpeername");
const SOCKETPAIR: u32 = number("socketpair");
const SETSOCKOPT: u32 = number("setsockopt");
const GETSOCKOPT: u32 = number("getsockopt");
const FCNTL: u32 = number("fcntl");
const RENAME: u32 = number("rename");
const UNLINK: u32 = number("unlink");
const EPOLL_WAIT: u32 = number("epoll_wait");
const EPOLL_CTL: u32 = number("epoll_ctl");
const INOTIFY_WATCH: u32 = number("inotify_add_watch");
const SPLICE: u32 = number("splice");
const TEE: u32 = number("tee");
const TIMERFD_CREATE: u32 = number("timerfd_create");
const TIMERFD_SETTIME: u32 = number("timerfd_settime");
const EVENTFD2: u32 = number("eventfd2");
const EPOLL_CREATE1: u32 = number("epoll_create1");
const INOTIFY_INIT1: u32 = number("inotify_init1");
const COPY_FILE_RANGE: u32 = number("copy_file_range");
const PIDFD_OPEN: u32 = number("pidfd_open");

const UNIX: u64 = 1;
const INET: u64 = 2;
const INET6: u64 = 10;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;

/// A place for addresses and small structures.
const PLACE: u64 = MEMORY + 0x7000;
const PLACE2: u64 = MEMORY + 0x7800;

fn inet(ip: [u8; 4], port: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0];
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.extend_from_slice(&ip);
    bytes.resize(16, 0);
    bytes
}

fn inet6_loopback(port: u16) -> Vec<u8> {
    let mut bytes = vec![10, 0];
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes.resize(23, 0);
    bytes.push(1);
    bytes.resize(28, 0);
    bytes
}

fn unix(path: &str) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend_from_slice(path.as_bytes());
    bytes
}

impl World {
    fn with_address(&mut self, number: u32, fd: u64, address: &[u8]) -> crate::call::SysResult {
        self.put(PLACE, address);
        self.call(number, &[fd, PLACE, to_u64(address.len())])
    }

    fn listener(&mut self, family: u64, address: &[u8]) -> u64 {
        let fd = self.ok(SOCKET, &[family, STREAM, 0]);
        self.with_address(BIND, fd, address).unwrap();
        self.ok(LISTEN, &[fd, 5]);
        fd
    }

    fn name(&mut self, number: u32, fd: u64) -> Vec<u8> {
        self.put(PLACE2, &128_u32.to_le_bytes());
        self.ok(number, &[fd, PLACE, PLACE2]);
        let len = self.get(PLACE2, 4);
        self.get(
            PLACE,
            u64::from(u32::from_le_bytes(len.try_into().unwrap())),
        )
    }

    fn port(&mut self, fd: u64) -> u16 {
        let name = self.name(GETSOCKNAME, fd);
        u16::from_be_bytes([name[2], name[3]])
    }

    fn connected(&mut self, family: u64, listener: u64, address: &[u8]) -> (u64, u64) {
        let client = self.ok(SOCKET, &[family, STREAM, 0]);
        assert_eq!(self.with_address(CONNECT, client, address), Ok(0));
        let server = self.ok(ACCEPT, &[listener, 0, 0]);
        (client, server)
    }

    fn poll_bits(&mut self, fd: u64) -> u32 {
        let mut record = u32::try_from(fd).unwrap().to_le_bytes().to_vec();
        record.extend_from_slice(&[0xFF, 0xFF, 0, 0]);
        self.put(PLACE, &record);
        self.ok(POLL, &[PLACE, 1, 0]);
        let record = self.get(PLACE, 8);
        u32::from(u16::from_le_bytes([record[6], record[7]]))
    }

    fn epoll_add(&mut self, epoll: u64, fd: u64, events: u32) {
        let mut event = events.to_le_bytes().to_vec();
        event.extend_from_slice(&fd.to_le_bytes());
        self.put(PLACE, &event);
        self.ok(EPOLL_CTL, &[epoll, 1, fd, PLACE]);
    }

    fn epoll_take(&mut self, epoll: u64) -> Vec<(u32, u64)> {
        let count = self.ok(EPOLL_WAIT, &[epoll, PLACE, 16, 0]);
        let bytes = self.get(PLACE, count * 12);
        bytes
            .chunks(12)
            .map(|event| {
                let events = u32::from_le_bytes(event[..4].try_into().unwrap());
                let data = u64::from_le_bytes(event[4..].try_into().unwrap());
                (events, data)
            })
            .collect()
    }

    fn pair(&mut self, kind: u64) -> (u64, u64) {
        self.ok(SOCKETPAIR, &[UNIX, kind, 0, PLACE]);
        let bytes = self.get(PLACE, 8);
        (u64::from(bytes[0]), u64::from(bytes[4]))
    }
}

#[test]
fn tcp_over_the_loopback_interface() {
    let mut world = World::new();
    let listener = world.listener(INET, &inet([127, 0, 0, 1], 0));
    let port = world.port(listener);
    assert!(world.blocks(ACCEPT, &[listener, 0, 0]));
    let (client, server) = world.connected(INET, listener, &inet([127, 0, 0, 1], port));
    assert_eq!(world.name(GETPEERNAME, client), inet([127, 0, 0, 1], port));
    assert_eq!(
        world.name(GETPEERNAME, server),
        world.name(GETSOCKNAME, client)
    );
    world.write(client, b"ping");
    assert_eq!(world.read(server, 100), b"ping");
    assert!(world.blocks(READ, &[server, BUFFER, 1]));
    world.write(server, b"one");
    world.write(server, b"two");
    assert_eq!(world.read(client, 100), b"onetwo");
    world.ok(SHUTDOWN, &[client, 1]);
    assert_eq!(world.read(server, 1), b"");
    world.write(server, b"still");
    assert_eq!(world.read(client, 100), b"still");
    world.ok(CLOSE, &[server]);
    assert_eq!(world.read(client, 1), b"");
    assert_eq!(world.errno(WRITE, &[client, BUFFER, 1]), Errno::EPIPE);
}

#[test]
fn connections_are_refused_reset_and_unreachable() {
    let mut world = World::new();
    let socket = world.ok(SOCKET, &[INET, STREAM, 0]);
    let refused = world.with_address(CONNECT, socket, &inet([127, 0, 0, 1], 9));
    assert_eq!(refused, Err(Errno::ECONNREFUSED.into()));
    let far = world.with_address(CONNECT, socket, &inet([10, 0, 0, 1], 80));
    assert_eq!(far, Err(Errno::ENETUNREACH.into()));
    // The same, without waiting: the error comes later, by poll and SO_ERROR.
    let quick = world.ok(SOCKET, &[INET, STREAM | u64::from(O_NONBLOCK), 0]);
    let begun = world.with_address(CONNECT, quick, &inet([127, 0, 0, 1], 9));
    assert_eq!(begun, Err(Errno::EINPROGRESS.into()));
    assert!(world.poll_bits(quick) & POLLHUP != 0);
    world.put(PLACE2, &4_u32.to_le_bytes());
    world.ok(GETSOCKOPT, &[quick, 1, 4, PLACE, PLACE2]);
    assert_eq!(world.get(PLACE, 4), 111_u32.to_le_bytes());
    let listener = world.listener(INET, &inet([0, 0, 0, 0], 7000));
    let begun = world.ok(SOCKET, &[INET, STREAM | u64::from(O_NONBLOCK), 0]);
    let address = inet([127, 0, 0, 1], 7000);
    assert_eq!(
        world.with_address(CONNECT, begun, &address),
        Err(Errno::EINPROGRESS.into())
    );
    assert_eq!(world.poll_bits(begun) & POLLOUT, POLLOUT);
    let server = world.ok(ACCEPT, &[listener, 0, 0]);
    // Closing with unread data resets.
    world.write(begun, b"unread");
    world.ok(CLOSE, &[server]);
    assert_eq!(world.errno(READ, &[begun, BUFFER, 1]), Errno::ECONNRESET);
    let second = world.ok(SOCKET, &[INET, STREAM, 0]);
    let taken = world.with_address(BIND, second, &inet([127, 0, 0, 1], 7000));
    assert_eq!(taken, Err(Errno::EADDRINUSE.into()));
    assert_eq!(world.errno(SOCKET, &[16, 3, 0]), Errno::EAFNOSUPPORT);
}

#[test]
fn ipv6_sockets_also_take_ipv4() {
    let mut world = World::new();
    let mut any = vec![10, 0];
    any.extend_from_slice(&8000_u16.to_be_bytes());
    any.resize(28, 0);
    let listener = world.listener(INET6, &any);
    let (client, server) = world.connected(INET6, listener, &inet6_loopback(8000));
    world.write(client, b"six");
    assert_eq!(world.read(server, 9), b"six");
    let (client, server) = world.connected(INET, listener, &inet([127, 0, 0, 1], 8000));
    world.write(client, b"four");
    assert_eq!(world.read(server, 9), b"four");
    assert_eq!(world.name(GETPEERNAME, server)[18..20], [0xFF, 0xFF]);
}

#[test]
fn udp_keeps_messages_apart() {
    let mut world = World::new();
    let receiver = world.ok(SOCKET, &[INET, DATAGRAM, 0]);
    world
        .with_address(BIND, receiver, &inet([127, 0, 0, 1], 5353))
        .unwrap();
    let sender = world.ok(SOCKET, &[INET, DATAGRAM, 0]);
    let address = inet([127, 0, 0, 1], 5353);
    world.put(PLACE, &address);
    for text in [b"first", b"other"] {
        world.put(BUFFER, text);
        world.ok(SENDTO, &[sender, BUFFER, 5, 0, PLACE, 16]);
    }
    world.put(PLACE2, &16_u32.to_le_bytes());
    let truncated = world.ok(RECVFROM, &[receiver, BUFFER, 3, 0x20, PLACE, PLACE2]);
    assert_eq!((truncated, world.get(BUFFER, 3)), (5, b"fir".to_vec()));
    let port = world.port(sender);
    assert_eq!(world.read(receiver, 100), b"other");
    assert!(port >= 32768);
    // A connected socket hears that no socket is bound there.
    let lonely = world.ok(SOCKET, &[INET, DATAGRAM, 0]);
    world
        .with_address(CONNECT, lonely, &inet([127, 0, 0, 1], 1))
        .unwrap();
    world.write(lonely, b"x");
    assert_eq!(
        world.errno(WRITE, &[lonely, BUFFER, 1]),
        Errno::ECONNREFUSED
    );
}

#[test]
fn unix_sockets_by_path_and_abstract_name() {
    let mut world = World::new();
    for name in ["/t/sock", "\0hidden"] {
        let listener = world.listener(UNIX, &unix(name));
        let again = world.ok(SOCKET, &[UNIX, STREAM, 0]);
        let taken = world.with_address(BIND, again, &unix(name));
        assert_eq!(taken, Err(Errno::EADDRINUSE.into()));
        let (client, server) = world.connected(UNIX, listener, &unix(name));
        world.write(client, b"hello");
        assert_eq!(world.read(server, 9), b"hello");
        // SO_PEERCRED.
        world.put(PLACE2, &12_u32.to_le_bytes());
        world.ok(GETSOCKOPT, &[server, 1, 17, PLACE, PLACE2]);
        assert_eq!(world.get(PLACE, 4), 1000_u32.to_le_bytes());
        world.ok(CLOSE, &[listener]);
        let gone = world.with_address(CONNECT, again, &unix(name));
        assert_eq!(gone, Err(Errno::ECONNREFUSED.into()));
    }
    world.ok_path(UNLINK, "/t/sock", &[]);
    let socket = world.ok(SOCKET, &[UNIX, STREAM, 0]);
    let missing = world.with_address(CONNECT, socket, &unix("/t/sock"));
    assert_eq!(missing, Err(Errno::ENOENT.into()));
}

#[test]
fn descriptors_travel_with_messages() {
    let mut world = World::new();
    let (left, right) = world.pair(STREAM);
    let file = world.open("f", O_CREAT | O_RDWR);
    world.write(file, b"carried");
    let control = PLACE2;
    let mut header = 20_u64.to_le_bytes().to_vec();
    header.extend_from_slice(&1_u32.to_le_bytes());
    header.extend_from_slice(&1_u32.to_le_bytes());
    header.extend_from_slice(&u32::try_from(file).unwrap().to_le_bytes());
    world.put(control, &header);
    let iovec = [BUFFER, 1];
    world.put(PLACE2 + 0x100, &iovec.map(u64::to_le_bytes).concat());
    let message = [0, 0, PLACE2 + 0x100, 1, control, 24, 0];
    world.put(PLACE, &message.map(u64::to_le_bytes).concat());
    world.ok(SENDMSG, &[left, PLACE, 0]);
    world.ok(CLOSE, &[file]);
    world.put(PLACE, &message.map(u64::to_le_bytes).concat());
    assert_eq!(world.ok(RECVMSG, &[right, PLACE, 0]), 1);
    let bytes = world.get(control, 24);
    let arrived = u64::from(bytes[16]);
    world.ok(8, &[arrived, 0, 0]);
    assert_eq!(world.read(arrived, 100), b"carried");
    // A message that no thread reads gives its files back.
    world.put(control, &header);
    world.put(control + 16, &u32::try_from(arrived).unwrap().to_le_bytes());
    world.put(PLACE, &message.map(u64::to_le_bytes).concat());
    world.ok(SENDMSG, &[left, PLACE, 0]);
    let opens = world.kernel.state.files.opens.iter().count();
    for fd in [left, right, arrived] {
        world.ok(CLOSE, &[fd]);
    }
    assert_eq!(world.kernel.state.files.opens.iter().count(), opens - 3);
}

#[test]
fn a_full_socket_blocks_until_somebody_reads() {
    let mut world = World::new();
    let (left, right) = world.pair(STREAM);
    world.ok(FCNTL, &[left, 4, u64::from(O_NONBLOCK)]);
    let mut sent = 0;
    while let Ok(count) = world.call(WRITE, &[left, BUFFER, 0x4000]) {
        sent += count;
    }
    assert_eq!(sent, 212_992);
    assert_eq!(world.poll_bits(left) & POLLOUT, 0);
    let mut received = 0;
    while received < sent {
        received += to_u64(world.read(right, 0x8000).len());
    }
    assert_eq!(world.poll_bits(left) & POLLOUT, POLLOUT);
    let (packets, other) = world.pair(5);
    world.write(packets, b"abc");
    world.write(packets, b"defg");
    assert_eq!(world.read(other, 100), b"abc");
    assert_eq!(world.read(other, 2), b"de");
    world.ok(CLOSE, &[packets]);
    assert_eq!(world.read(other, 10), b"");
}

#[test]
fn epoll_is_level_edge_or_one_shot() {
    let mut world = World::new();
    world.ok(PIPE, &[PLACE]);
    let (reader, writer) = (3, 4);
    let epoll = world.ok(EPOLL_CREATE1, &[0]);
    world.epoll_add(epoll, reader, POLLIN);
    assert!(world.epoll_take(epoll).is_empty());
    assert!(world.blocks(EPOLL_WAIT, &[epoll, PLACE, 16, as_u64(-1)]));
    world.write(writer, b"x");
    assert_eq!(world.epoll_take(epoll), [(POLLIN, reader)]);
    assert_eq!(world.epoll_take(epoll), [(POLLIN, reader)]);
    let nested = world.ok(EPOLL_CREATE1, &[0]);
    world.epoll_add(nested, epoll, POLLIN);
    assert_eq!(world.epoll_take(nested), [(POLLIN, epoll)]);
    assert_eq!(
        world.errno(EPOLL_CTL, &[epoll, 1, nested, PLACE]),
        Errno::ELOOP
    );
    let edge = world.ok(EPOLL_CREATE1, &[0]);
    world.epoll_add(edge, reader, POLLIN | (1 << 31));
    assert_eq!(world.epoll_take(edge), [(POLLIN, reader)]);
    assert!(world.epoll_take(edge).is_empty());
    world.write(writer, b"y");
    assert_eq!(world.epoll_take(edge), [(POLLIN, reader)]);
    let once = world.ok(EPOLL_CREATE1, &[0]);
    world.epoll_add(once, reader, POLLIN | (1 << 30));
    assert_eq!(world.epoll_take(once).len(), 1);
    assert!(world.epoll_take(once).is_empty());
    world.ok(CLOSE, &[writer]);
    world.read(reader, 10);
    assert_eq!(world.epoll_take(epoll), [(POLLHUP, reader)]);
    world.ok(CLOSE, &[reader]);
    assert!(world.epoll_take(epoll).is_empty());
    let file = world.open("f", O_CREAT);
    world.put(PLACE, &[0; 12]);
    assert_eq!(
        world.errno(EPOLL_CTL, &[epoll, 1, file, PLACE]),
        Errno::EPERM
    );
}

#[test]
fn eventfd_counts_and_timerfd_fires() {
    let mut world = World::new();
    let event = world.ok(EVENTFD2, &[3, u64::from(O_NONBLOCK)]);
    world.write(event, &4_u64.to_le_bytes());
    assert_eq!(world.read(event, 8), 7_u64.to_le_bytes());
    assert_eq!(world.errno(READ, &[event, BUFFER, 8]), Errno::EAGAIN);
    let timer = world.ok(TIMERFD_CREATE, &[1, u64::from(O_NONBLOCK)]);
    let spec = [0, 500, 0, 1000_u64].map(u64::to_le_bytes).concat();
    world.put(PLACE, &spec);
    world.ok(TIMERFD_SETTIME, &[timer, 0, PLACE, 0]);
    let deadline = crate::files::next_deadline(&world.kernel.state.files);
    assert_eq!(deadline, Some(VirtualTime(1000)));
    assert_eq!(world.poll_bits(timer), 0);
    world.kernel.state.now = VirtualTime(2000);
    crate::files::timers_expired(&mut world.kernel);
    assert_eq!(world.read(timer, 8), 3_u64.to_le_bytes());
    let deadline = crate::files::next_deadline(&world.kernel.state.files);
    assert_eq!(deadline, Some(VirtualTime(2500)));
    world.ok(CLOSE, &[timer]);
    assert_eq!(crate::files::next_deadline(&world.kernel.state.files), None);
}

#[test]
fn inotify_sees_what_the_guest_does() {
    let mut world = World::new();
    let watch = world.ok(INOTIFY_INIT1, &[u64::from(O_NONBLOCK)]);
    let path = world.text(0, "/t");
    assert_eq!(world.ok(INOTIFY_WATCH, &[watch, path, 0xFFF]), 1);
    let file = world.open("f", O_CREAT | O_RDWR);
    world.write(file, b"x");
    world.ok(CLOSE, &[file]);
    let args = [world.text(0, "f"), world.text(1, "g")];
    world.ok(RENAME, &args);
    world.ok_path(UNLINK, "g", &[]);
    let bytes = world.read(watch, 0x1000);
    let mut masks = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let word = |place: usize| {
            u32::from_le_bytes(bytes[at + place..at + place + 4].try_into().unwrap())
        };
        masks.push(word(4));
        at += 16 + to_usize(u64::from(word(12)));
    }
    // Created, opened, modified, closed after writing, moved from, moved to, deleted.
    assert_eq!(masks, [0x100, 0x20, 0x2, 0x8, 0x40, 0x80, 0x200]);
    assert_eq!(world.errno(READ, &[watch, BUFFER, 100]), Errno::EAGAIN);
}

#[test]
fn bytes_move_between_files_without_a_buffer() {
    let mut world = World::new();
    let source = world.open("src", O_CREAT | O_RDWR);
    world.write(source, b"0123456789");
    world.ok(PIPE, &[PLACE]);
    let (reader, writer) = (source + 1, source + 2);
    world.put(PLACE, &2_u64.to_le_bytes());
    assert_eq!(world.ok(SENDFILE, &[writer, source, PLACE, 3]), 3);
    assert_eq!(world.get(PLACE, 8), 5_u64.to_le_bytes());
    world.ok(PIPE, &[PLACE2]);
    let (copy_reader, copy_writer) = (source + 3, source + 4);
    assert_eq!(world.ok(TEE, &[reader, copy_writer, 100, 0]), 3);
    assert_eq!(world.read(copy_reader, 10), b"234");
    let target = world.open("dst", O_CREAT | O_RDWR);
    assert_eq!(world.ok(SPLICE, &[reader, 0, target, 0, 100, 0]), 3);
    assert!(world.blocks(SPLICE, &[reader, 0, target, 0, 100, 0]));
    world.put(PLACE, &0_u64.to_le_bytes());
    world.put(PLACE2, &3_u64.to_le_bytes());
    let moved = world.ok(COPY_FILE_RANGE, &[source, PLACE, target, PLACE2, 100, 0]);
    assert_eq!(moved, 10);
    world.ok(8, &[target, 0, 0]);
    assert_eq!(world.read(target, 100), b"2340123456789");
    assert_eq!(
        world.errno(SPLICE, &[source, 0, target, 0, 5, 0]),
        Errno::EINVAL
    );
}

#[test]
fn a_pidfd_is_silent_while_the_process_lives() {
    let mut world = World::new();
    let pidfd = world.ok(PIDFD_OPEN, &[1000, 0]);
    assert_eq!(world.poll_bits(pidfd), 0);
    assert_eq!(world.errno(PIDFD_OPEN, &[77, 0]), Errno::ESRCH);
}

#[test]
fn receive_timeouts_become_deadlines() {
    let mut world = World::new();
    let (left, _right) = world.pair(STREAM);
    world.put(PLACE, &[2_u64, 500_000].map(u64::to_le_bytes).concat());
    world.ok(SETSOCKOPT, &[left, 1, 20, PLACE, 16]);
    match world.call(READ, &[left, BUFFER, 1]) {
        Err(Trouble::Block(block)) => {
            assert_eq!(block.deadline, Some(VirtualTime(2_500_000_000)));
        }
        other => panic!("{other:?}"),
    }
}
