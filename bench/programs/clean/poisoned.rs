//! A panic under a lock is seen by who comes next.
use std::sync::{Arc, Mutex};
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let lock = Arc::new(Mutex::new(1));
    let other = Arc::clone(&lock);
    let t = std::thread::spawn(move || {
        let _held = other.lock();
        panic!("on purpose");
    });
    let seen = match lock.lock() {
        Ok(value) => *value,
        Err(poisoned) => *poisoned.into_inner(),
    };
    assert_eq!(seen, 1);
    assert!(t.join().is_err());
}
