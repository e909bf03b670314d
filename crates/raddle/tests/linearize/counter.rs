//! A counter that two threads add to. Buggy: the sum is loaded and stored, not added to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

fn add(counter: &AtomicU64, number: u64) -> u64 {
    if cfg!(feature = "buggy") {
        let old = counter.load(Ordering::SeqCst);
        counter.store(old + number, Ordering::SeqCst);
        old
    } else {
        counter.fetch_add(number, Ordering::SeqCst)
    }
}

fn main() {
    let counter = Arc::new(AtomicU64::new(0));
    let clients = [1, 2].map(|number| {
        let counter = Arc::clone(&counter);
        thread::spawn(move || {
            raddle_annotations::operation("add", &[&number], || add(&counter, number));
        })
    });
    for client in clients {
        client.join().unwrap();
    }
    raddle_annotations::probe("get", &[], || counter.load(Ordering::SeqCst));
}
