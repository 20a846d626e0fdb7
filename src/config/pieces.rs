//! A list that grows piece by piece, for what there is once for every node of a document.
//!
//! A list that grows by doubling leaves as much behind as it holds, and an allocator does not use what a
//! large one leaves for small things. Of this one the beginning can be given back before the rest.

use std::ops::{Index, IndexMut};

/// Items of a piece.
const PIECE: usize = 1024;

/// A list in pieces.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    pieces: Vec<Vec<T>>,
    /// Pieces at the beginning that were given back.
    gone: usize,
    count: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            gone: 0,
            count: 0,
        }
    }
}

impl<T> Pieces<T> {
    /// How many items were added.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds one.
    pub fn push(&mut self, item: T) {
        if self.count.is_multiple_of(PIECE) {
            // A document of some nodes has no piece for many.
            let room = if self.count == 0 { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        if let Some(last) = self.pieces.last_mut() {
            last.push(item);
        }
        self.count += 1;
    }

    /// The items from `first` on.
    pub fn starting_at(&self, first: usize) -> impl Iterator<Item = &T> {
        let mut pieces = self.pieces.iter().skip(first / PIECE);
        let begun = pieces.next().and_then(|piece| piece.get(first % PIECE..));
        begun.into_iter().chain(pieces.map(Vec::as_slice)).flatten()
    }

    /// Gives back the pieces before `index`: nobody asks for what is in them again.
    pub fn let_go_before(&mut self, index: usize) {
        while self.gone < index / PIECE {
            self.pieces[self.gone] = Vec::new();
            self.gone += 1;
        }
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.pieces[index / PIECE][index % PIECE]
    }
}

impl<T> IndexMut<usize> for Pieces<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index / PIECE][index % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list_over_its_pieces() {
        let mut list = Pieces::default();
        assert!(list.is_empty());
        (0..3 * PIECE + 7).for_each(|item| list.push(item));
        list[PIECE] += 1;
        assert_eq!(list.len(), 3 * PIECE + 7);
        assert_eq!(
            [list[0], list[PIECE - 1], list[PIECE]],
            [0, PIECE - 1, PIECE + 1]
        );
        let rest: Vec<usize> = list.starting_at(3 * PIECE - 2).copied().collect();
        assert_eq!(rest, (3 * PIECE - 2..3 * PIECE + 7).collect::<Vec<_>>());
        assert_eq!(list.starting_at(list.len()).count(), 0);
    }

    #[test]
    fn the_beginning_is_given_back_and_the_rest_stays() {
        let mut list = Pieces::default();
        (0..2 * PIECE + 1).for_each(|item| list.push(item));
        list.let_go_before(PIECE + 5);
        list.let_go_before(5);
        assert_eq!(list.pieces[0].capacity(), 0);
        assert_eq!((list[PIECE], list[2 * PIECE]), (PIECE, 2 * PIECE));
        list.push(9);
        assert_eq!((list.len(), list[2 * PIECE + 1]), (2 * PIECE + 2, 9));
    }
}
