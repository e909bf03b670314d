//! A thread that is parked until a flag is set.
use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    let sleeper = std::thread::spawn(move || {
        while !seen.load(Ordering::Acquire) {
            std::thread::park();
        }
    });
    flag.store(true, Ordering::Release);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
}
