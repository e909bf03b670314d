// rust/condvar_lost, buggy.
// Wrong: the flag is an atomic that is set without the Mutex; set and notify fall between the
// waiter's check and its wait.
// Origin: Rust: lost wake-up of a Condvar

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[derive(Default)]
struct Gate {
    open: AtomicBool,
    lock: Mutex<()>,
    opened: Condvar,
}

fn wait(gate: &Gate) {
    let mut guard = gate.lock.lock().unwrap();
    while !gate.open.load(Ordering::SeqCst) {
        guard = gate.opened.wait(guard).unwrap();
    }
}

fn open(gate: &Gate) {
    gate.open.store(true, Ordering::SeqCst);
    gate.opened.notify_one();
}

fn main() {
    let gate = Arc::new(Gate::default());
    let (a, b) = (Arc::clone(&gate), Arc::clone(&gate));
    let waiter = thread::spawn(move || wait(&a));
    let opener = thread::spawn(move || open(&b));
    waiter.join().unwrap();
    opener.join().unwrap();
}
