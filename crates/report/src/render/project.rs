//! Where the project is: forms that leave the machine name files relative to it.

use std::fmt::Write as _;

/// Folders of the user's machine; both absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    root: String,
    folder: String,
}

impl Project {
    /// The folder of the project, and the one in which the user stands: paths that he names are relative to that.
    pub fn new(root: impl Into<String>, folder: impl Into<String>) -> Self {
        Self {
            root: normal(&root.into()),
            folder: normal(&folder.into()),
        }
    }

    /// The project's folder as a URI that ends with a slash.
    pub(super) fn uri(&self) -> String {
        let root = self.root.trim_end_matches('/');
        format!("file://{}/", encoded(root))
    }

    /// A file relative to the project; none if it is not below it.
    pub(super) fn relative_path(&self, file: &str) -> Option<String> {
        self.below(&self.absolute(file)).map(str::to_owned)
    }

    /// A file relative to the project, or as a URI of its own if it is not below it.
    pub(super) fn relative_uri(&self, file: &str) -> Result<String, String> {
        let path = self.absolute(file);
        match self.below(&path) {
            Some(rest) => Ok(encoded(rest)),
            None => Err(format!("file://{}", encoded(&path))),
        }
    }

    fn absolute(&self, file: &str) -> String {
        if file.starts_with('/') {
            normal(file)
        } else {
            normal(&format!("{}/{file}", self.folder))
        }
    }

    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&self.root)?;
        rest.strip_prefix('/').or(self.is_top().then_some(rest))
    }

    fn is_top(&self) -> bool {
        self.root == "/"
    }
}

/// An absolute path without `.`, `..` and double slashes. Links are not followed: their names are what users know.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path as part of a URI.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'+' => {
                out.push(char::from(byte));
            }
            other => write!(out, "%{other:02X}").expect("a string takes everything"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_project_are_relative_to_it() {
        let project = Project::new("/home/me/project/", "/home/me/project/src");
        let relative = |file| project.relative_uri(file);
        assert_eq!(relative("a.c"), Ok("src/a.c".into()));
        assert_eq!(relative("../lib/ä.c"), Ok("lib/%C3%A4.c".into()));
        assert_eq!(
            relative("/home/me/project/./src//b.c"),
            Ok("src/b.c".into())
        );
        assert_eq!(
            relative("/home/me/project2/b.c"),
            Err("file:///home/me/project2/b.c".into())
        );
        assert_eq!(project.uri(), "file:///home/me/project/");
    }
}
