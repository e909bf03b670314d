//! Marks of operations as bytes: what it is, a number, and as many bytes as it says.

use raddle_stdx::width::{to_u64, to_usize};
use raddle_world::{Mark, Value};

use super::varint::{Bytes, put};

const BEGIN: u64 = 0;
const PROBE: u64 = 1;
const END: u64 = 2;
/// Behind these come numbers, texts and errors, in this order.
const ARGUMENT: u64 = 3;
const RESULT: u64 = 6;

pub(super) fn put_mark(out: &mut Vec<u8>, mark: &Mark) {
    match mark {
        Mark::Begin { name, is_probe } => {
            put_bytes(out, if *is_probe { PROBE } else { BEGIN }, name.as_bytes());
        }
        Mark::Argument(value) => put_value(out, ARGUMENT, value),
        Mark::Result(value) => put_value(out, RESULT, value),
        Mark::End => put(out, END),
    }
}

fn put_value(out: &mut Vec<u8>, base: u64, value: &Value) {
    match value {
        Value::Number(number) => {
            put(out, base);
            put(out, number.cast_unsigned());
        }
        Value::Text(bytes) => put_bytes(out, base + 1, bytes),
        Value::Error(bytes) => put_bytes(out, base + 2, bytes),
    }
}

fn put_bytes(out: &mut Vec<u8>, what: u64, bytes: &[u8]) {
    put(out, what);
    put(out, to_u64(bytes.len()));
    out.extend_from_slice(bytes);
}

pub(super) fn take_mark(bytes: &mut Bytes<'_>) -> Option<Mark> {
    Some(match bytes.integer()? {
        what @ (BEGIN | PROBE) => Mark::Begin {
            name: String::from_utf8_lossy(&take_bytes(bytes)?).into_owned(),
            is_probe: what == PROBE,
        },
        END => Mark::End,
        what if (ARGUMENT..RESULT).contains(&what) => {
            Mark::Argument(take_value(bytes, what - ARGUMENT)?)
        }
        what => Mark::Result(take_value(bytes, what - RESULT)?),
    })
}

fn take_value(bytes: &mut Bytes<'_>, class: u64) -> Option<Value> {
    Some(match class {
        0 => Value::Number(bytes.integer()?.cast_signed()),
        1 => Value::Text(take_bytes(bytes)?),
        2 => Value::Error(take_bytes(bytes)?),
        _ => return None,
    })
}

/// Never more than the block has.
fn take_bytes(bytes: &mut Bytes<'_>) -> Option<Vec<u8>> {
    let length = to_usize(bytes.integer()?);
    Some(bytes.take(length)?.to_vec())
}
