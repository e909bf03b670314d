//! The last handle drops what it holds, once.
use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
static DROPS: AtomicU32 = AtomicU32::new(0);
struct Held(Vec<u8>);
impl Drop for Held {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Ordering::Relaxed);
    }
}
fn main() {
    let held = Arc::new(Held(vec![1, 2, 3]));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let held = Arc::clone(&held);
            std::thread::spawn(move || assert_eq!(held.0.len(), 3))
        })
        .collect();
    drop(held);
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(DROPS.load(Ordering::Relaxed), 1);
}
