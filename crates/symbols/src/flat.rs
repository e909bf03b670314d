//! Overlapping and nested address spans, flattened so that one binary search finds the innermost.

/// A half-open span of addresses that carries a value.
#[derive(Debug, Clone)]
pub(crate) struct Span<T> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Of two spans that start together, the deeper one is the inner one.
    pub(crate) depth: u32,
    pub(crate) value: T,
}

/// Disjoint segments; where spans overlapped, the one that starts last (the innermost) has won.
#[derive(Debug, Clone)]
pub(crate) struct Flat<T> {
    /// Invariant: strictly ascending, same length as `values`; a segment reaches to the next start.
    starts: Vec<u64>,
    values: Vec<Option<T>>,
}

impl<T: Copy> Flat<T> {
    /// Keeps the order of `spans` that are equal in start, depth and end: the last of them wins.
    pub(crate) fn new(mut spans: Vec<Span<T>>) -> Self {
        spans.retain(|span| span.start < span.end);
        spans.sort_by_key(|span| (span.start, span.depth, std::cmp::Reverse(span.end)));
        let mut flat = Self {
            starts: Vec::with_capacity(spans.len()),
            values: Vec::with_capacity(spans.len()),
        };
        let mut open: Vec<(u64, T)> = Vec::new();
        for span in &spans {
            flat.close(&mut open, span.start);
            open.push((span.end, span.value));
            flat.emit(span.start, Some(span.value));
        }
        flat.close(&mut open, u64::MAX);
        flat
    }

    pub(crate) fn at(&self, address: u64) -> Option<T> {
        let after = self.starts.partition_point(|&start| start <= address);
        self.values[after.checked_sub(1)?]
    }

    fn close(&mut self, open: &mut Vec<(u64, T)>, limit: u64) {
        while let Some(&(end, _)) = open.last() {
            if end > limit {
                return;
            }
            while open.last().is_some_and(|&(inner, _)| inner <= end) {
                open.pop();
            }
            self.emit(end, open.last().map(|&(_, value)| value));
        }
    }

    fn emit(&mut self, start: u64, value: Option<T>) {
        if self.starts.last() == Some(&start) {
            let last = self.values.len() - 1;
            self.values[last] = value;
        } else {
            self.starts.push(start);
            self.values.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64, depth: u32, value: char) -> Span<char> {
        Span {
            start,
            end,
            depth,
            value,
        }
    }

    fn picture(spans: Vec<Span<char>>) -> String {
        let flat = Flat::new(spans);
        (0..12).map(|at| flat.at(at).unwrap_or('.')).collect()
    }

    #[test]
    fn inner_spans_cover_outer_ones_and_give_back_the_rest() {
        assert_eq!(
            picture(vec![span(1, 9, 0, 'a'), span(3, 5, 1, 'b')]),
            ".aabbaaaa..."
        );
    }

    #[test]
    fn of_two_spans_that_start_together_the_deeper_wins() {
        assert_eq!(
            picture(vec![span(2, 4, 1, 'b'), span(2, 8, 0, 'a')]),
            "..bbaaaa...."
        );
    }

    #[test]
    fn partial_overlaps_go_to_the_later_start() {
        assert_eq!(
            picture(vec![span(0, 6, 0, 'a'), span(4, 9, 0, 'b')]),
            "aaaabbbbb..."
        );
    }

    #[test]
    fn empty_and_reversed_spans_are_nothing() {
        assert_eq!(
            picture(vec![span(4, 4, 0, 'a'), span(9, 2, 0, 'b')]),
            "............"
        );
    }

    #[test]
    fn a_span_to_the_end_of_the_address_space_is_closed() {
        let flat = Flat::new(vec![span(5, u64::MAX, 0, 'a')]);
        assert_eq!((flat.at(4), flat.at(u64::MAX - 1)), (None, Some('a')));
    }
}
