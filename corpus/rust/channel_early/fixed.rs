// rust/channel_early, fixed.
// Wrong: the sender announces the new version through a channel and stores it after that; a
// receiver that polls in between finds the old version. No data race.
// Fix: the version is stored before it is announced.
// Origin: Rust: a message that is sent before the state it announces

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;

fn main() {
    let version = Arc::new(AtomicU32::new(1));
    let published = Arc::clone(&version);
    let (sender, receiver) = mpsc::channel();
    let writer = thread::spawn(move || {
        let next = 2;
        published.store(next, Ordering::SeqCst);
        sender.send(next).unwrap();
    });
    let reader = thread::spawn(move || {
        // Polls, as an event loop does between its other tasks.
        if let Ok(announced) = receiver.try_recv() {
            assert_eq!(version.load(Ordering::SeqCst), announced);
        }
        receiver // stays open until the writer has sent
    });
    writer.join().unwrap();
    reader.join().unwrap();
}
