//! A request as it goes out: what was written for it, and the batches lent to it, which nobody copies on their way.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// What is left to be sent of a request, piece by piece. None of them is empty.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pieces: VecDeque<Bytes>,
}

impl Frame {
    /// Appends a piece.
    pub(super) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }
}

impl Buf for Frame {
    fn remaining(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |first| first)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let count = into.len().min(self.pieces.len());
        for (slice, piece) in into.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
        }
        count
    }

    fn advance(&mut self, mut bytes: usize) {
        while bytes > 0
            && let Some(first) = self.pieces.front_mut()
        {
            let here = bytes.min(first.len());
            first.advance(here);
            bytes -= here;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_taken_in_any_steps_is_what_was_put_in(
            pieces: Vec<Vec<u8>>,
            steps in prop::collection::vec(1..20usize, 0..200),
        ) {
            let mut frame = Frame::default();
            pieces.iter().for_each(|piece| frame.push(Bytes::copy_from_slice(piece)));
            let all = pieces.concat();
            let mut taken = Vec::new();
            for step in steps {
                prop_assert_eq!(frame.remaining(), all.len() - taken.len());
                let mut slices = [IoSlice::new(&[]); 4];
                let filled = frame.chunks_vectored(&mut slices);
                let here: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
                prop_assert!(here.starts_with(frame.chunk()));
                let step = step.min(here.len());
                taken.extend_from_slice(&here[..step]);
                frame.advance(step);
            }
            taken.extend_from_slice(&frame.copy_to_bytes(frame.remaining()));
            prop_assert_eq!(taken, all);
        }
    }
}
