//! One leader per round of a barrier.
use std::sync::{Arc, Barrier, atomic::{AtomicU32, Ordering}};
fn main() {
    let barrier = Arc::new(Barrier::new(3));
    let leaders = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (barrier, leaders) = (Arc::clone(&barrier), Arc::clone(&leaders));
            std::thread::spawn(move || {
                for _ in 0..2 {
                    if barrier.wait().is_leader() {
                        leaders.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(leaders.load(Ordering::Relaxed), 2);
}
