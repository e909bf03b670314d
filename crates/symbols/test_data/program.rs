use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub struct Shared {
    pub name: [u8; 8],
    pub ready: AtomicBool,
    pub pair: (u32, AtomicU64),
}

pub static SHARED: Shared = Shared {
    name: *b"shared!!",
    ready: AtomicBool::new(false),
    pair: (1, AtomicU64::new(2)),
};

#[inline(never)]
pub fn publish(value: u64) {
    SHARED.pair.1.store(value, Ordering::Relaxed); // MARK first
    SHARED.ready.store(true, Ordering::Release); // MARK second
}

fn main() {
    publish(std::env::args().count() as u64);
    while !SHARED.ready.load(Ordering::Acquire) {}
    println!("{}", SHARED.pair.1.load(Ordering::Acquire) + u64::from(SHARED.pair.0));
}
