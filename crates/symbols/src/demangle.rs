//! Names as people write them, and whether a full name is the one a person meant.

use std::borrow::Cow;
use std::fmt;

/// Longer names are shown as they are: no compiler makes them, and demanglers need time for them.
const NAME_LEN_MAX: usize = 16 << 10;

/// Substitutions let a short mangled name stand for a gigantic one; the output is cut off here.
const OUTPUT_LEN_MAX: usize = 64 << 10;

/// Nesting that the C++ demangler may follow; templates in practice stay below 50.
const RECURSION_MAX: u32 = 128;

/// A C++ path part that looks like a parameter list.
const ANONYMOUS: &str = "(anonymous namespace)";

/// The readable form of a Rust or C++ symbol, without Rust's hash; other names come back unchanged.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > NAME_LEN_MAX {
        return Cow::Borrowed(name);
    }
    let rust = name.starts_with("_R") || is_legacy_rust(name);
    if rust && let Ok(demangled) = rustc_demangle::try_demangle(name) {
        return Cow::Owned(format!("{demangled:#}"));
    }
    if name.starts_with("_Z") {
        return demangle_cpp(name).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    Cow::Borrowed(name)
}

/// Whether `wanted`, as a user writes it, names the function with the demangled name `full`.
///
/// Generic arguments and parameter lists are ignored unless `wanted` is the full text, and leading path parts may be
/// left out: `atomic_store` and `atomic::atomic_store` both mean `core::sync::atomic::atomic_store::<u32>`.
pub fn names_match(full: &str, wanted: &str) -> bool {
    if full == wanted {
        return true;
    }
    // Most names fail here, before anything is copied.
    if wanted.is_empty() || !full.contains(wanted.rsplit(':').next().unwrap_or(wanted)) {
        return false;
    }
    let path = path_of(full);
    let Some(front) = path.strip_suffix(wanted) else {
        return false;
    };
    front.is_empty() || front.ends_with("::")
}

/// The path of a demangled function name: no generic arguments, no parameter list, no return type.
pub fn path_of(full: &str) -> String {
    let mut path = String::with_capacity(full.len());
    let mut rest = full;
    let mut depth = 0_usize;
    while let Some(c) = rest.chars().next() {
        if depth == 0 && rest.starts_with("operator") && !ends_in_word(&path) {
            let end = rest[8..].find('(').map_or(rest.len(), |at| {
                // `operator()` itself contains the parenthesis that would end the name.
                8 + if at == 0 { 2.min(rest.len() - 8) } else { at }
            });
            path.push_str(&rest[..end]);
            break;
        }
        if depth == 0 && rest.starts_with(ANONYMOUS) {
            path.push_str(ANONYMOUS);
            rest = &rest[ANONYMOUS.len()..];
            continue;
        }
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            c if depth == 0 => path.push(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    let path = path.replace("::::", "::");
    path.trim_matches(|c| c == ':' || c == ' ').to_owned()
}

fn ends_in_word(path: &str) -> bool {
    path.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Old-style Rust names are valid C++ names; only the hash `17h0123456789abcdefE` tells them apart.
fn is_legacy_rust(name: &str) -> bool {
    let Some(at) = name.rfind("17h") else {
        return false;
    };
    let hash = &name.as_bytes()[at + 3..];
    name.starts_with("_ZN")
        && hash.len() >= 17
        && hash[..16].iter().all(u8::is_ascii_hexdigit)
        && hash[16] == b'E'
}

fn demangle_cpp(name: &str) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(RECURSION_MAX);
    let options = cpp_demangle::DemangleOptions::new()
        .no_return_type()
        .recursion_limit(RECURSION_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(name, &parse).ok()?;
    let mut output = Bounded(String::new());
    symbol.structured_demangle(&mut output, &options).ok()?;
    Some(output.0)
}

struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > OUTPUT_LEN_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_and_cpp_names_become_readable_and_c_names_stay() {
        assert_eq!(
            demangle("_ZN4core4sync6atomic12atomic_store17h0123456789abcdefE"),
            "core::sync::atomic::atomic_store"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("pthread_mutex_lock"), "pthread_mutex_lock");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
    }

    #[test]
    fn a_short_name_that_stands_for_a_giant_one_is_left_alone() {
        // Each parameter is a pair of the one before it.
        let mut bomb = String::from("_Z1f1A1tIS_S_E");
        for digit in "123456789ABCDEFGHIJKLMNOPQRST".chars() {
            bomb.push_str(&format!("S0_IS{digit}_S{digit}_E"));
        }
        assert_eq!(demangle(&bomb), bomb);
        assert_eq!(
            demangle("_Z1f1A1tIS_S_ES0_IS1_S1_E"),
            "f(A, t<A, A>, t<t<A, A>, t<A, A> >)"
        );
    }

    #[test]
    fn users_may_leave_out_generics_and_leading_parts() {
        let full = "core::sync::atomic::atomic_store::<i32>";
        assert!(names_match(full, "core::sync::atomic::atomic_store"));
        assert!(names_match(full, "atomic::atomic_store"));
        assert!(names_match(full, "atomic_store"));
        assert!(!names_match(full, "store"));
        assert!(!names_match(full, ""));
        assert!(names_match("std::mutex::lock()", "std::mutex::lock"));
        assert!(names_match("std::mutex::lock()", "std::mutex::lock()"));
        assert!(!names_match("std::mutex::unlock()", "lock"));
    }

    #[test]
    fn paths_keep_operators_and_anonymous_namespaces() {
        assert_eq!(path_of("a::b<int, c<d>>::f(int)"), "a::b::f");
        assert_eq!(path_of("f::operator()(int)"), "f::operator()");
        assert_eq!(path_of("v<int>::operator<<(int)"), "v::operator<<");
        assert_eq!(
            path_of("(anonymous namespace)::g(char)"),
            "(anonymous namespace)::g"
        );
        assert_eq!(path_of("<alloc::vec::Vec<T> as Drop>::drop"), "drop");
    }
}
