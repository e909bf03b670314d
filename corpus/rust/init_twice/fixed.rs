// rust/init_twice, fixed.
// Wrong: both threads see that nothing has been initialised and both initialise.
// Fix: one compare_exchange decides who initialises.
// Origin: Rust: one-time initialisation by load and store of an AtomicBool

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

static STARTED: AtomicBool = AtomicBool::new(false);
static INITIALISED: AtomicUsize = AtomicUsize::new(0);

fn ensure_started() {
    if STARTED
        .compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
    {
        INITIALISED.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() {
    let threads = [thread::spawn(ensure_started), thread::spawn(ensure_started)];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(INITIALISED.load(Ordering::SeqCst), 1);
}
