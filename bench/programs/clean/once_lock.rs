//! A value that is made once.
use std::sync::OnceLock;
static NAME: OnceLock<String> = OnceLock::new();
fn main() {
    let look = || assert_eq!(NAME.get_or_init(|| "name".repeat(3)), "namenamename");
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(look)).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
