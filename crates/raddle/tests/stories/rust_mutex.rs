//! The lock is given up between looking and changing.

use std::sync::Mutex;
use std::thread;

static SEATS: Mutex<i32> = Mutex::new(1);

fn book() {
    let free = *SEATS.lock().unwrap();
    if free > 0 {
        *SEATS.lock().unwrap() -= 1;
    }
}

fn main() {
    let threads: Vec<_> = (0..2).map(|_| thread::spawn(book)).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(*SEATS.lock().unwrap() >= 0, "a seat was sold twice");
}
