// rust/atomic_counter, fixed.
// Wrong: the load and the store are atomic, the increment is not. No data race.
// Fix: fetch_add.
// Origin: Rust: atomic counter advanced by load and store

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

fn bump(counter: &AtomicUsize) {
    for _ in 0..3 {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() {
    let counter = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || bump(&counter))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 6);
}
