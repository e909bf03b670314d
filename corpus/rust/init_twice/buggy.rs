// rust/init_twice, buggy.
// Wrong: both threads see that nothing has been initialised and both initialise.
// Origin: Rust: one-time initialisation by load and store of an AtomicBool

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

static STARTED: AtomicBool = AtomicBool::new(false);
static INITIALISED: AtomicUsize = AtomicUsize::new(0);

fn ensure_started() {
    if !STARTED.load(Ordering::SeqCst) {
        STARTED.store(true, Ordering::SeqCst);
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
