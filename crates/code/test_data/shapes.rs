#[repr(u8)]
#[derive(Clone, Copy)]
pub enum Kind {
    Add, Sub, Mul, Div, Shl, Xor, Not, Neg,
}

#[inline(never)]
#[no_mangle]
pub fn dispatch(kind: &Kind, a: &mut Vec<u64>) {
    match *kind {
        Kind::Add => a.push(1),
        Kind::Sub => { a.pop(); }
        Kind::Mul => a.iter_mut().for_each(|x| *x *= 3),
        Kind::Div => a.truncate(2),
        Kind::Shl => a.reverse(),
        Kind::Xor => a.iter_mut().for_each(|x| *x ^= 9),
        Kind::Not => a.clear(),
        Kind::Neg => a.insert(0, 7),
    }
}

fn main() {
    let kinds = [Kind::Add, Kind::Sub, Kind::Mul, Kind::Div, Kind::Shl, Kind::Xor, Kind::Not, Kind::Neg];
    let mut a = vec![1, 2, 3];
    for _ in std::env::args() {
        for kind in &kinds {
            dispatch(kind, &mut a);
        }
    }
    println!("{a:?}");
}
