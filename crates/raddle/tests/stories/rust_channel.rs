//! The collector counts on the order in which two senders send.

use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    let one = thread::spawn(move || sender.send(1).unwrap());
    let two = thread::spawn(move || other.send(2).unwrap());
    let first = receiver.recv().unwrap();
    let second = receiver.recv().unwrap();
    assert!(first < second, "out of order: {first}, {second}");
    one.join().unwrap();
    two.join().unwrap();
}
