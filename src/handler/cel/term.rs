//! The compiled tree: what gives a value, and the comparisons that are no [`Operator`]'s.
//!
//! [`Operator`]: crate::handler::operator::Operator

use super::arithmetic::{self, Arithmetic};
use super::{Scope, failed};
use crate::handler::Failure;
use crate::handler::compare::{self, text_bytes};
use crate::handler::fields::Slot;
use crate::handler::json::{Segment, scan};
use crate::handler::operator::{self, Relation};
use crate::handler::path::Field;
use crate::handler::predicate::Clause;
use regex::bytes::Regex;
use std::borrow::Cow;

/// What gives a value.
#[derive(Clone, Debug)]
pub(crate) enum Term {
    /// What is written in the file.
    Literal(Field<'static>),
    /// A field of the record.
    Field(Slot),
    /// The element of a list, that many levels out.
    Element(usize),
    /// A key or value as a whole, as JSON.
    Json(Box<Term>),
    /// A member or an element that is written out.
    Part(Box<Term>, Segment),
    /// A member or an element by a calculated name or index.
    At(Box<(Term, Term)>),
    /// `+ - * / %`
    Calculate(Arithmetic, Box<(Term, Term)>),
    /// `-x`
    Negate(Box<Term>),
    /// `c ? a : b`
    Choice(Box<(Clause, Term, Term)>),
    /// A function of one value.
    Call(Function, Box<Term>),
    /// `[a, b]`
    List(Vec<Term>),
    /// `list.map(x, …)` and `list.filter(x, …)`
    Collect(Box<Collect>),
    /// True or false.
    Clause(Box<Clause>),
}

/// Functions of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    Int,
    Double,
    String,
}

/// A list made of another one.
#[derive(Clone, Debug)]
pub(crate) struct Collect {
    pub(crate) list: Term,
    /// The elements that go in; without it, all.
    pub(crate) keep: Option<Clause>,
    /// What goes in; without it, the element.
    pub(crate) make: Option<Term>,
}

/// Conditions over terms.
#[derive(Clone, Debug)]
pub(crate) enum Comparison {
    /// A value that is true or false itself.
    Truth(Term),
    /// `==`
    Equal(Term, Term),
    /// `< <= > >=`
    Order(Relation, Term, Term),
    /// `left in right`
    In(Term, Term),
    /// `has(…)` of a part of an element.
    Has(Term),
    /// `startsWith`, `endsWith` and `contains`.
    Text(TextTest, Term, Term),
    /// `matches`
    Matches(Term, Regex),
    /// `all`, `exists` and `exists_one`: the list, and what is asked of each element.
    Each(Quantity, Term, Clause),
}

/// What is asked of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// How many elements must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    All,
    Some,
    One,
}

impl Term {
    /// What it gives.
    ///
    /// # Errors
    /// A wrong type, or what reading a field fails with.
    pub(super) fn value<'v>(&'v self, scope: &Scope<'_, 'v>) -> Result<Field<'v>, Failure> {
        match self {
            Self::Literal(literal) => Ok(literal.borrowed()),
            Self::Field(slot) => scope.view().read(*slot),
            Self::Element(depth) => Ok(scope.named(*depth)),
            Self::Json(whole) => json(whole.value(scope)?),
            Self::Part(of, segment) => part(of.value(scope)?, std::slice::from_ref(segment)),
            Self::At(both) => at(both.0.value(scope)?, &both.1.value(scope)?),
            Self::Calculate(operation, both) => {
                operation.apply(&both.0.value(scope)?, &both.1.value(scope)?)
            }
            Self::Negate(term) => arithmetic::negate(&term.value(scope)?),
            Self::Choice(parts) => match parts.0.holds(scope)? {
                true => parts.1.value(scope),
                false => parts.2.value(scope),
            },
            Self::Call(function, argument) => function.call(argument.value(scope)?),
            Self::List(terms) => list(terms, scope),
            Self::Collect(collect) => collect.value(scope),
            Self::Clause(clause) => clause.holds(scope).map(Field::Bool),
        }
    }
}

/// A key or value as a whole as the JSON that it is.
fn json<'v>(whole: Field<'v>) -> Result<Field<'v>, Failure> {
    match whole {
        Field::Bytes(document) => Field::of_token(&document[scan::root(document)?]),
        Field::Null => Ok(Field::Absent),
        other => Ok(other),
    }
}

fn part<'v>(of: Field<'v>, path: &[Segment]) -> Result<Field<'v>, Failure> {
    match of {
        Field::Composite(Cow::Borrowed(document)) => match scan::find(document, path)? {
            Some(span) => Field::of_token(&document[span]),
            None => Ok(Field::Absent),
        },
        Field::Composite(Cow::Owned(document)) => match scan::find(&document, path)? {
            Some(span) => Field::of_token(&document[span]).map(Field::into_owned),
            None => Ok(Field::Absent),
        },
        _ => Ok(Field::Absent),
    }
}

fn at<'v>(of: Field<'v>, index: &Field<'_>) -> Result<Field<'v>, Failure> {
    let segment = match index {
        Field::Absent => return Ok(Field::Absent),
        Field::Integer(index) => match usize::try_from(*index) {
            Ok(index) => Segment::Index(index),
            Err(_) => return Ok(Field::Absent),
        },
        Field::Number(spelled) => match spelled.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => return Ok(Field::Absent),
        },
        other => match text_bytes(other).map(std::str::from_utf8) {
            Some(Ok(name)) => Segment::Name(name.to_owned()),
            _ => {
                return Err(failed(
                    "what stands in `[…]` is neither an integer nor a text",
                ));
            }
        },
    };
    part(of, std::slice::from_ref(&segment))
}

/// A JSON array; absent if an element is.
fn list<'v>(terms: &'v [Term], scope: &Scope<'_, 'v>) -> Result<Field<'v>, Failure> {
    let mut json = List::default();
    for term in terms {
        if !json.push(&term.value(scope)?)? {
            return Ok(Field::Absent);
        }
    }
    Ok(json.into_field())
}

/// A JSON array that grows.
#[derive(Default)]
struct List(Vec<u8>);

impl List {
    /// Appends `value`; false if there is none.
    fn push(&mut self, value: &Field<'_>) -> Result<bool, Failure> {
        let Some(json) = value.json()? else {
            return Ok(false);
        };
        self.0.push(if self.0.is_empty() { b'[' } else { b',' });
        self.0.extend_from_slice(&json);
        Ok(true)
    }

    fn into_field(mut self) -> Field<'static> {
        if self.0.is_empty() {
            self.0.push(b'[');
        }
        self.0.push(b']');
        Field::Composite(Cow::Owned(self.0))
    }
}

impl Collect {
    fn value<'v>(&'v self, scope: &Scope<'_, 'v>) -> Result<Field<'v>, Failure> {
        let Some(elements) = elements(self.list.value(scope)?)? else {
            return Ok(Field::Absent);
        };
        let mut json = List::default();
        for element in elements {
            let element = scope.element(element);
            let inside = scope.within(&element);
            if let Some(keep) = &self.keep
                && !keep.holds(&inside)?
            {
                continue;
            }
            let made = match &self.make {
                Some(make) => make.value(&inside)?,
                None => inside.named(0),
            };
            if !json.push(&made)? {
                return Ok(Field::Absent);
            }
        }
        Ok(json.into_field())
    }
}

/// The elements of a list, `None` if it is absent.
fn elements(list: Field<'_>) -> Result<Option<Vec<Field<'_>>>, Failure> {
    let fields = match &list {
        Field::Absent => return Ok(None),
        Field::Composite(document) if document.first() == Some(&b'[') => match document {
            Cow::Borrowed(document) => fields_of(document)?,
            Cow::Owned(document) => {
                let fields = fields_of(document)?;
                fields.into_iter().map(Field::into_owned).collect()
            }
        },
        _ => return Err(failed("a list is expected")),
    };
    Ok(Some(fields))
}

fn fields_of(document: &[u8]) -> Result<Vec<Field<'_>>, Failure> {
    let mut fields = Vec::new();
    scan::each_element(document, &(0..document.len()), &mut |element| {
        fields.push(Field::of_token(&document[element])?);
        Ok(())
    })?;
    Ok(fields)
}

impl Function {
    fn call<'v>(self, argument: Field<'v>) -> Result<Field<'v>, Failure> {
        if let Field::Absent = argument {
            return Ok(Field::Absent);
        }
        match self {
            Self::Size => size(&argument).map(Field::Integer),
            Self::Int => arithmetic::integer(&argument),
            Self::Double => arithmetic::decimal(&argument),
            Self::String => text(argument),
        }
    }
}

/// Characters of a text, bytes of bytes, elements of a list, members of an object.
fn size(of: &Field<'_>) -> Result<i64, Failure> {
    let size = match of {
        Field::Text(text) => text.chars().count(),
        Field::Bytes(bytes) => bytes.len(),
        Field::Composite(document) => {
            let span = 0..document.len();
            match scan::elements(document, &span)? {
                Some(elements) => elements.len(),
                None => scan::members(document, &span)?.map_or(0, |m| m.len()),
            }
        }
        _ => return Err(failed("`size` takes a text, a list or an object")),
    };
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

/// Texts as they are, numbers as they are spelled, true and false.
fn text(of: Field<'_>) -> Result<Field<'_>, Failure> {
    let spelled = match &of {
        Field::Text(_) => return Ok(of),
        Field::Bytes(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Field::Bool(b) => Some(b.to_string()),
        Field::Integer(n) => Some(n.to_string()),
        Field::Number(spelled) => Some(spelled.to_string()),
        Field::Absent | Field::Null | Field::Composite(_) => None,
    };
    let spelled =
        spelled.ok_or_else(|| failed("`string` takes a text, a number, true or false"))?;
    Ok(Field::Text(Cow::Owned(spelled)))
}

impl Comparison {
    /// Whether it holds.
    ///
    /// # Errors
    /// A term's failure, or a truth that is neither true nor false.
    pub(crate) fn holds<'v>(&'v self, scope: &Scope<'_, 'v>) -> Result<bool, Failure> {
        match self {
            Self::Truth(term) => match term.value(scope)? {
                Field::Bool(holds) => Ok(holds),
                Field::Absent => Ok(false),
                _ => Err(failed("a condition is neither true nor false")),
            },
            Self::Equal(left, right) => compare::equals(&left.value(scope)?, &right.value(scope)?),
            Self::Order(relation, left, right) => {
                let order = compare::order(&left.value(scope)?, &right.value(scope)?);
                Ok(order.is_some_and(|order| relation.allows(order)))
            }
            Self::In(left, right) => is_in(&left.value(scope)?, &right.value(scope)?),
            Self::Has(term) => Ok(term.value(scope)? != Field::Absent),
            Self::Text(test, text, part) => test.holds(&text.value(scope)?, &part.value(scope)?),
            Self::Matches(text, regex) => Ok(operator::matches(&text.value(scope)?, regex)),
            Self::Each(quantity, list, clause) => match elements(list.value(scope)?)? {
                Some(elements) => quantity.holds(elements, clause, scope),
                None => Ok(false),
            },
        }
    }
}

/// Whether a list has the element, or an object the member.
fn is_in(wanted: &Field<'_>, container: &Field<'_>) -> Result<bool, Failure> {
    let Field::Composite(document) = container else {
        return Ok(false);
    };
    if document.first() == Some(&b'[') {
        return operator::has_element(document, wanted);
    }
    let Some(Ok(name)) = text_bytes(wanted).map(std::str::from_utf8) else {
        return Ok(false);
    };
    let path = [Segment::Name(name.to_owned())];
    Ok(scan::find(document, &path)?.is_some())
}

impl TextTest {
    fn holds(self, text: &Field<'_>, part: &Field<'_>) -> Result<bool, Failure> {
        if self == Self::Contains {
            return operator::contains(text, part);
        }
        let Some(part) = text_bytes(part) else {
            return Ok(false);
        };
        Ok(match self {
            Self::StartsWith => operator::starts_with(text, part),
            Self::EndsWith | Self::Contains => operator::ends_with(text, part),
        })
    }
}

impl Quantity {
    fn holds<'v>(
        self,
        elements: Vec<Field<'v>>,
        clause: &'v Clause,
        scope: &Scope<'_, 'v>,
    ) -> Result<bool, Failure> {
        let mut failed = None;
        let mut holding = 0;
        for element in elements {
            let element = scope.element(element);
            match (clause.holds(&scope.within(&element)), self) {
                (Ok(false), Self::All) => return Ok(false),
                (Ok(true), Self::Some) => return Ok(true),
                (Ok(holds), _) => holding += usize::from(holds),
                (Err(failure), _) => failed = failed.or(Some(failure)),
            }
        }
        match (failed, self) {
            (Some(failure), _) => Err(failure),
            (None, Self::All) => Ok(true),
            (None, Self::Some) => Ok(false),
            (None, Self::One) => Ok(holding == 1),
        }
    }
}
