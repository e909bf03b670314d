//! Two tests: one panics in a thread of its own, one waits for ever for a wake-up that came before.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[test]
fn increments_are_not_lost() {
    let count = Arc::new(AtomicU32::new(0));
    let other = Arc::clone(&count);
    let thread = thread::spawn(move || {
        let seen = other.load(Ordering::SeqCst);
        other.store(seen + 1, Ordering::SeqCst);
    });
    let seen = count.load(Ordering::SeqCst);
    count.store(seen + 1, Ordering::SeqCst);
    thread.join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn the_waiter_is_woken() {
    let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        other.2.store(true, Ordering::SeqCst);
        other.1.notify_one();
    });
    let (lock, condition, is_done) = &*shared;
    if !is_done.load(Ordering::SeqCst) {
        let guard = lock.lock().unwrap();
        let _guard = condition.wait(guard).unwrap();
    }
    thread.join().unwrap();
}
