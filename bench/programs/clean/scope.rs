//! Scoped threads over parts of a slice.
fn main() {
    let mut all = [1, 2, 3, 4, 5, 6];
    let (left, right) = all.split_at_mut(3);
    std::thread::scope(|scope| {
        scope.spawn(|| left.iter_mut().for_each(|x| *x *= 2));
        scope.spawn(|| right.iter_mut().for_each(|x| *x *= 3));
    });
    assert_eq!(all, [2, 4, 6, 12, 15, 18]);
}
