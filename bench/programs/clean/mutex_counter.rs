//! Three threads count under a mutex.
use std::sync::{Arc, Mutex};
fn main() {
    let count = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let count = Arc::clone(&count);
            std::thread::spawn(move || (0..3).for_each(|_| *count.lock().unwrap() += 1))
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(*count.lock().unwrap(), 9);
}
