//! What an expression sees while it is evaluated: the record, and the elements of the lists that
//! it goes through.

use crate::handler::fields::View;
use crate::handler::path::Field;

/// A record, and the elements that are named around a part of an expression.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s, 'v> {
    view: &'s View<'v>,
    innermost: Option<&'s Element<'s, 'v>>,
}

/// One element of a list, and those of the lists around it.
pub(super) struct Element<'s, 'v> {
    value: Field<'v>,
    outer: Option<&'s Element<'s, 'v>>,
}

impl<'s, 'v> Scope<'s, 'v> {
    /// The record alone.
    pub(crate) fn of(view: &'s View<'v>) -> Self {
        Self {
            view,
            innermost: None,
        }
    }

    /// The record.
    pub(crate) fn view(&self) -> &'s View<'v> {
        self.view
    }

    /// `value` as the innermost element, to be [entered](Self::within).
    pub(super) fn element(&self, value: Field<'v>) -> Element<'s, 'v> {
        Element {
            value,
            outer: self.innermost,
        }
    }

    /// The same with `element` around.
    pub(super) fn within<'i>(&self, element: &'i Element<'i, 'v>) -> Scope<'i, 'v>
    where
        's: 'i,
    {
        Scope {
            view: self.view,
            innermost: Some(element),
        }
    }

    /// The element `depth` levels out from the innermost.
    pub(super) fn named(&self, depth: usize) -> Field<'v> {
        let mut element = self.innermost;
        for _ in 0..depth {
            element = element.and_then(|e| e.outer);
        }
        element.map_or(Field::Absent, |e| e.value.clone())
    }
}
