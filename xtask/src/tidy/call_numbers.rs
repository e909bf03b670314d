//! What a system call is stands once, in `crates/calls`: no list of system-call numbers anywhere else.
//!
//! A list is recognised by its form, since a number alone says nothing:
//! ```text
//!   const FUTEX: u32 = 202;                          the name and the number of one call
//!   /// Calls that create contexts                   integers, told to be calls by name or comment
//!   const CREATING: [u32; 4] = [56, 57, 58, 435];
//!   numbers of `raddle_calls::number` in an array    a property that belongs on the rows
//! ```

use raddle_calls::find;

/// The crate that has the table.
const HOME: &str = "crates/calls/";

/// Complaints about one file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    if path.starts_with(HOME) || path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let mut comment = String::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim();
        if line.starts_with("//") {
            comment.push_str(line);
            continue;
        }
        if let Some(item) = constant(line) {
            let mut value = item.value.to_owned();
            while !value.contains(';') {
                let Some((more, _)) = lines.next() else { break };
                value.push_str(more.trim());
            }
            if let Some(what) = complaint(&comment, item.name, &value) {
                complaints.push(format!(
                    "{path}:{number}: {what}; the table in {HOME} has numbers and properties"
                ));
            }
        }
        comment.clear();
    }
    complaints
}

struct Constant<'a> {
    name: &'a str,
    /// What follows the equals sign on the same line.
    value: &'a str,
}

/// The constant that a line begins to define.
fn constant(line: &str) -> Option<Constant<'_>> {
    let at = line.find("const ").or_else(|| line.find("static "))?;
    let is_item = at == 0 || line.starts_with("pub");
    let (_, rest) = line[at..].split_once(' ').filter(|_| is_item)?;
    let (name, rest) = rest.split_once(':')?;
    let (_, value) = rest.split_once(" = ").or(rest.split_once(" ="))?;
    Some(Constant { name, value })
}

/// What is wrong with a constant, if it is a list of calls.
fn complaint(comment: &str, name: &str, value: &str) -> Option<String> {
    let value = value.trim_end_matches(';').trim();
    let Some(list) = value.strip_prefix(['[', '&']) else {
        let call = find(&name.to_lowercase())?;
        let is_number = value.parse() == Ok(call.number);
        return is_number.then(|| format!("`{name}` is the number of a system call"));
    };
    let elements: Vec<&str> = list
        .split(',')
        .map(|element| element.trim_matches(['[', ']', ' ']))
        .filter(|element| !element.is_empty())
        .collect();
    let is_named = |element: &&str| element.contains("number(\"");
    let is_integer = |element: &&str| element.parse::<u32>().is_ok();
    let words = format!("{comment} {name}").to_lowercase();
    let is_about_calls = words.contains("system call") || words.contains("call");
    let is_list = elements.len() > 1
        && (elements.iter().any(is_named) || is_about_calls && elements.iter().all(is_integer));
    is_list.then(|| format!("`{name}` is a list of system calls"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check("crates/some/src/file.rs", text).len()
    }

    #[test]
    fn numbers_and_lists_of_calls_are_found() {
        assert_eq!(complaints("const FUTEX: u32 = 202;\n"), 1);
        assert_eq!(complaints("    pub(crate) const READ: u32 = 0;\n"), 1);
        assert_eq!(
            complaints(
                "/// System calls that create.\nconst MAKING: [u32; 2] = [\n    56,\n    57,\n];\n"
            ),
            1
        );
        assert_eq!(complaints("const CALLS: &[u32] = &[1, 2];\n"), 1);
        assert_eq!(
            complaints("const A: [u32; 2] = [number(\"read\"), number(\"write\")];\n"),
            1
        );
    }

    #[test]
    fn other_numbers_are_not() {
        assert_eq!(complaints("const FUTEX: u32 = number(\"futex\");\n"), 0);
        assert_eq!(complaints("const READ: u8 = 4;\n"), 0, "a bit");
        assert_eq!(
            complaints("/// Sizes.\nconst SIZES: [u64; 2] = [8, 24];\n"),
            0
        );
        let table = check("crates/calls/src/table.rs", "const READ: u32 = 0;\n");
        assert_eq!(table, Vec::<String>::new());
    }
}
