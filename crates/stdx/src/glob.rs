//! Patterns for names and paths.

/// Whether `text` fits `glob`, in which `*` stands for any characters.
pub fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if g < glob.len() && glob[g] == b'*' {
            star = Some((g, t));
            g += 1;
        } else if g < glob.len() && glob[g] == text[t] {
            g += 1;
            t += 1;
        } else if let Some((star_g, star_t)) = star {
            g = star_g + 1;
            t = star_t + 1;
            star = Some((star_g, star_t + 1));
        } else {
            return false;
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (glob, text, fits) in [
            ("src/*.c", "src/queue.c", true),
            ("src/*.c", "src/queue.cpp", false),
            ("*queue*", "lib/queue.c", true),
            ("", "", true),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("queue.c", "lib/queue.c", false),
        ] {
            assert_eq!(
                glob_matches(glob.as_bytes(), text.as_bytes()),
                fits,
                "{glob} {text}"
            );
        }
    }
}
