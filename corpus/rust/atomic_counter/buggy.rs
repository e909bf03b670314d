// rust/atomic_counter, buggy.
// Wrong: the load and the store are atomic, the increment is not. No data race.
// Origin: Rust: atomic counter advanced by load and store

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

fn bump(counter: &AtomicUsize) {
    for _ in 0..3 {
        let seen = counter.load(Ordering::SeqCst);
        counter.store(seen + 1, Ordering::SeqCst);
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
