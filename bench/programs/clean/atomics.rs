//! Publication by release and acquire.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
static READY: AtomicBool = AtomicBool::new(false);
static DATA: AtomicU32 = AtomicU32::new(0);
fn main() {
    let t = std::thread::spawn(|| {
        DATA.store(7, Ordering::Relaxed);
        READY.store(true, Ordering::Release);
    });
    while !READY.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!(DATA.load(Ordering::Relaxed), 7);
    t.join().unwrap();
}
