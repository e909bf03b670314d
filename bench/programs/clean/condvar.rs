//! A condition that is waited for in a loop.
use std::sync::{Arc, Condvar, Mutex};
fn main() {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let t = std::thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let mut is_set = pair.0.lock().unwrap();
    while !*is_set {
        is_set = pair.1.wait(is_set).unwrap();
    }
    drop(is_set);
    t.join().unwrap();
}
