//! Two senders and a receiver.
use std::sync::mpsc::channel;
fn main() {
    let (to, from) = channel();
    for base in [1, 10] {
        let to = to.clone();
        std::thread::spawn(move || (0..3).for_each(|i| to.send(base + i).unwrap()));
    }
    drop(to);
    assert_eq!(from.iter().sum::<i32>(), 6 + 33);
}
