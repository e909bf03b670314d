//! Console blocks of the manual are executed by the tests, or say why not.

/// Complaints about the blocks of one page.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    if path != "README.md" && !path.starts_with("docs/src/") {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        if !is_open && !is_accounted_for(info) {
            complaints.push(format!(
                "{path}:{}: mark the block `console run`, or say why it is not executed: \
                 `console shown-because=\"REASON\"`",
                number + 1
            ));
        }
        is_open = !is_open;
    }
    complaints
}

fn is_accounted_for(info: &str) -> bool {
    let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
    let reason = rest
        .strip_prefix("shown-because=\"")
        .and_then(|rest| rest.strip_suffix('"'));
    // Other names of a console would be a way around the rule.
    !["console", "shell", "sh", "bash"].contains(&language)
        || rest == "run"
        || reason.is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_a_mark_is_found() {
        let page = |info: &str| format!("# Title\n\n```{info}\n$ raddle\n```\n");
        let complaints = |info: &str| check("docs/src/a.md", &page(info)).len();
        assert_eq!(complaints("console run"), 0);
        assert_eq!(complaints("console shown-because=\"needs a kernel\""), 0);
        assert_eq!(complaints("c file=a.c"), 0);
        assert_eq!(complaints("text"), 0);
        assert_eq!(complaints("console"), 1);
        assert_eq!(complaints("sh"), 1);
        assert_eq!(complaints("console shown-because=\"\""), 1);
        assert_eq!(complaints("console ran"), 1);
        assert!(check("CONTRIBUTING.md", &page("console")).is_empty());
    }
}
