//! Readers see both halves alike.
use std::sync::{Arc, RwLock};
fn main() {
    let pair = Arc::new(RwLock::new((0, 0)));
    let writer = Arc::clone(&pair);
    let w = std::thread::spawn(move || {
        for i in 1..4 {
            let mut pair = writer.write().unwrap();
            pair.0 = i;
            pair.1 = -i;
        }
    });
    for _ in 0..3 {
        let pair = pair.read().unwrap();
        assert_eq!(pair.0, -pair.1);
    }
    w.join().unwrap();
}
