//! What a kernel module's file says about itself.

use object::{Object, ObjectSection};

/// The name that the module has in the guest.
pub fn name(content: &[u8]) -> Option<String> {
    value(content, b"name=")
}

/// Modules that must be loaded before, as `modinfo` shows them; those built into the kernel are not listed.
pub fn dependencies(content: &[u8]) -> Vec<String> {
    let listed = value(content, b"depends=").unwrap_or_default();
    listed
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn value(content: &[u8], key: &[u8]) -> Option<String> {
    let file = object::File::parse(content).ok()?;
    let section = file.section_by_name(".modinfo")?;
    let data = section.data().ok()?;
    data.split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(key))
        .map(|text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_has_no_name() {
        assert_eq!(name(b"hello"), None);
        assert!(dependencies(b"\x7FELF").is_empty());
    }
}
