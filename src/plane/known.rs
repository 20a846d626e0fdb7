//! Partitions of a topic, each looked up once.

use std::cell::RefCell;

/// What is kept of each partition that was written to, by its number; for one thread.
#[derive(Debug)]
pub(crate) struct Known<T>(RefCell<Vec<Option<T>>>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T> Known<T> {
    /// Hands over what is kept of a partition, looked up if it was not written to before. `None` if its number is none.
    pub(crate) fn with<R>(
        &self,
        partition: i32,
        look_up: impl FnOnce() -> T,
        hand: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let index = usize::try_from(partition).ok()?;
        if let Some(Some(kept)) = self.0.borrow().get(index) {
            return Some(hand(kept));
        }
        let mut known = self.0.borrow_mut();
        if known.len() <= index {
            known.resize_with(index + 1, || None);
        }
        Some(hand(known.get_mut(index)?.get_or_insert_with(look_up)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_up_once() {
        let known = Known::default();
        let looked_up = RefCell::new(Vec::new());
        let mut ask = |partition| {
            let look_up = || {
                looked_up.borrow_mut().push(partition);
                partition * 10
            };
            known.with(partition, look_up, |kept| *kept)
        };
        assert_eq!(
            [2, 0, 2, 0].map(&mut ask),
            [Some(20), Some(0), Some(20), Some(0)]
        );
        assert_eq!(ask(-1), None);
        assert_eq!(*looked_up.borrow(), [2, 0]);
    }
}
