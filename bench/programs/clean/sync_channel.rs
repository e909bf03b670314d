//! A channel with room for one.
use std::sync::mpsc::sync_channel;
fn main() {
    let (to, from) = sync_channel(1);
    let t = std::thread::spawn(move || (0..4).for_each(|i| to.send(i).unwrap()));
    assert_eq!(from.iter().collect::<Vec<i32>>(), [0, 1, 2, 3]);
    t.join().unwrap();
}
