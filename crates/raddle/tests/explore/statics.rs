//! Variables of a function and of a closure.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn add() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let seen = COUNT.load(SeqCst);
    COUNT.store(seen + 1, SeqCst);
}

fn main() {
    let work = || {
        static TICKS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
        add();
        let seen = TICKS[1].load(SeqCst);
        TICKS[1].store(seen + 1, SeqCst);
        assert_eq!(TICKS[1].load(SeqCst), seen + 1);
    };
    let threads = [std::thread::spawn(work), std::thread::spawn(work)];
    for thread in threads {
        thread.join().expect("no thread panics");
    }
}
