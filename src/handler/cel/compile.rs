//! Syntax tree → compiled tree: names are looked up, types that are certain are checked, and what
//! a map could say as well becomes the same [`Operator`]s.

use super::arithmetic::{Arithmetic, negate};
use super::kind::Kind;
use super::parse::{Mistake, Parsed};
use super::term::{Comparison, Term};
use crate::handler::fault::suggest;
use crate::handler::fields::Fields;
use crate::handler::json::Segment;
use crate::handler::operator::{Operator, Relation};
use crate::handler::path::{Field, Path, ROOTS};
use crate::handler::predicate::{Clause, WORDS};
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use std::borrow::Cow;

/// Compiles one expression.
pub(super) struct Compiler<'c, 't> {
    pub(super) parsed: &'c Parsed<'t>,
    pub(super) fields: &'c mut Fields,
    /// The names of the elements around, the innermost last.
    pub(super) elements: Vec<String>,
}

/// What a part of an expression is compiled to.
pub(super) enum Compiled {
    /// True or false.
    Clause(Clause),
    /// A value.
    Term(Term, Kind),
}

/// What compiling gives.
pub(super) type Outcome<T> = Result<T, Mistake>;

impl Compiled {
    /// A comparison of terms.
    pub(super) fn comparison(comparison: Comparison) -> Self {
        Self::Clause(Clause::Compare(Box::new(comparison)))
    }

    fn into_term(self) -> (Term, Kind) {
        match self {
            Self::Term(term, kind) => (term, kind),
            Self::Clause(Clause::Always(b)) => (Term::Literal(Field::Bool(b)), Kind::Bool),
            Self::Clause(clause) => (Term::Clause(Box::new(clause)), Kind::Bool),
        }
    }
}

impl<'c, 't> Compiler<'c, 't> {
    pub(super) fn new(parsed: &'c Parsed<'t>, fields: &'c mut Fields) -> Self {
        Self {
            parsed,
            fields,
            elements: Vec::new(),
        }
    }

    /// `expr` as a condition.
    pub(super) fn condition(&mut self, expr: &IdedExpr) -> Outcome<Clause> {
        let (term, kind) = match self.compile(expr)? {
            Compiled::Clause(clause) => return Ok(clause),
            Compiled::Term(term, kind) => (term, kind),
        };
        if let Kind::Any | Kind::Bool = kind {
            return Ok(Clause::Compare(Box::new(Comparison::Truth(term))));
        }
        let message = format!("a condition is expected, this is {kind}");
        let mistake = Mistake::new(self.parsed.whole(expr), message);
        Err(match kind {
            Kind::Bytes => mistake.help("compare it with something, such as `== \"true\"`"),
            _ => mistake,
        })
    }

    /// `expr` as a value.
    pub(super) fn value(&mut self, expr: &IdedExpr) -> Outcome<Term> {
        self.term(expr).map(|(term, _)| term)
    }

    /// `expr` as a value, and what is known of it.
    pub(super) fn term(&mut self, expr: &IdedExpr) -> Outcome<(Term, Kind)> {
        self.compile(expr).map(Compiled::into_term)
    }

    fn compile(&mut self, expr: &IdedExpr) -> Outcome<Compiled> {
        match &expr.expr {
            Expr::Literal(literal) => self.literal(expr, literal),
            Expr::Ident(_) | Expr::Select(_) => self.reference(expr),
            Expr::Call(call) => self.call(expr, call),
            Expr::List(list) => {
                let terms = list.elements.iter().map(|element| self.value(element));
                let terms = terms.collect::<Outcome<_>>()?;
                Ok(Compiled::Term(Term::List(terms), Kind::List))
            }
            Expr::Map(_) | Expr::Struct(_) => {
                let message = "an expression cannot make an object";
                let help = "`set` the fields of it one by one";
                Err(Mistake::new(self.parsed.token(expr), message).help(help))
            }
            Expr::Comprehension(_) | Expr::Unspecified => Err(Mistake::new(
                self.parsed.whole(expr),
                "this is no expression",
            )),
        }
    }

    fn literal(&self, expr: &IdedExpr, literal: &LiteralValue) -> Outcome<Compiled> {
        let (field, kind) = match literal {
            LiteralValue::Boolean(b) => return Ok(Compiled::Clause(Clause::Always(*b.inner()))),
            LiteralValue::Null => (Field::Null, Kind::Null),
            LiteralValue::Int(n) => (Field::Integer(*n.inner()), Kind::Number),
            LiteralValue::UInt(n) => match i64::try_from(*n.inner()) {
                Ok(small) => (Field::Integer(small), Kind::Number),
                Err(_) => (
                    Field::Number(Cow::Owned(n.inner().to_string())),
                    Kind::Number,
                ),
            },
            LiteralValue::Double(double) => {
                let spelled = spelled(self.parsed.spelled(expr), *double.inner());
                (Field::Number(Cow::Owned(spelled)), Kind::Number)
            }
            LiteralValue::String(text) => {
                (Field::Text(Cow::Owned(text.inner().to_owned())), Kind::Text)
            }
            LiteralValue::Bytes(_) => {
                let message = "bytes cannot be written in an expression";
                let help = "a text is compared with bytes as they are";
                return Err(Mistake::new(self.parsed.token(expr), message).help(help));
            }
        };
        Ok(Compiled::Term(Term::Literal(field), kind))
    }

    /// A name, and what is selected from it.
    pub(super) fn reference(&mut self, expr: &IdedExpr) -> Outcome<Compiled> {
        if let Some(path) = self.path(expr)? {
            let kind = Kind::of_path(&path);
            return Ok(Compiled::Term(Term::Field(self.fields.slot(&path)), kind));
        }
        match &expr.expr {
            Expr::Ident(name) => match self.elements.iter().rev().position(|n| n == name) {
                Some(depth) => Ok(Compiled::Term(Term::Element(depth), Kind::Any)),
                None => Err(self.unknown(expr, name)),
            },
            Expr::Select(select) => {
                let of = self.json(&select.operand)?;
                let part = Term::Part(Box::new(of), Segment::Name(select.field.clone()));
                Ok(Compiled::Term(part, Kind::Any))
            }
            _ => self.compile(expr),
        }
    }

    /// `expr` as a path of the record, `None` if it is not one.
    pub(super) fn path(&self, expr: &IdedExpr) -> Outcome<Option<Path>> {
        match &expr.expr {
            Expr::Ident(name) if self.elements.contains(name) => Ok(None),
            Expr::Ident(name) => Ok(match name.as_str() {
                "topic" => Some(Path::Topic),
                "partition" => Some(Path::Partition),
                "offset" => Some(Path::Offset),
                "timestamp" => Some(Path::Timestamp),
                "key" => Some(Path::Key(Vec::new())),
                "value" => Some(Path::Value(Vec::new())),
                "header" => return Err(self.all_headers(expr)),
                _ => None,
            }),
            Expr::Select(select) => {
                self.part(&select.operand, Segment::Name(select.field.clone()), expr)
            }
            Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
                [of, index] => match &index.expr {
                    Expr::Literal(LiteralValue::String(name)) => {
                        self.part(of, Segment::Name(name.inner().to_owned()), expr)
                    }
                    Expr::Literal(LiteralValue::Int(number)) => {
                        match usize::try_from(*number.inner()) {
                            Ok(index) => self.part(of, Segment::Index(index), expr),
                            Err(_) => {
                                let message = "an index counts from 0";
                                Err(Mistake::new(self.parsed.whole(index), message))
                            }
                        }
                    }
                    _ if self.is_header(of) => {
                        let message = "the name of a header is a text that is written out";
                        Err(Mistake::new(self.parsed.whole(index), message))
                    }
                    _ => Ok(None),
                },
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The path of `segment` below `of`. What follows a header's name after a dot belongs to it.
    fn part(&self, of: &IdedExpr, segment: Segment, expr: &IdedExpr) -> Outcome<Option<Path>> {
        if self.is_header(of) {
            return match segment {
                Segment::Name(name) => Ok(Some(Path::Header(name))),
                _ => Err(self.all_headers(of)),
            };
        }
        let no_fields = |root: &str| {
            let message = format!("`{root}` has no fields");
            Err(Mistake::new(self.parsed.whole(expr), message))
        };
        match (self.path(of)?, segment) {
            (None, _) => Ok(None),
            (Some(Path::Key(mut segments)), segment) => {
                segments.push(segment);
                Ok(Some(Path::Key(segments)))
            }
            (Some(Path::Value(mut segments)), segment) => {
                segments.push(segment);
                Ok(Some(Path::Value(segments)))
            }
            (Some(Path::Header(name)), Segment::Name(rest))
                if matches!(expr.expr, Expr::Select(_)) =>
            {
                Ok(Some(Path::Header(format!("{name}.{rest}"))))
            }
            (Some(other), _) => no_fields(&other.to_string()),
        }
    }

    /// Whether `expr` is the variable `header`.
    pub(super) fn is_header(&self, expr: &IdedExpr) -> bool {
        matches!(&expr.expr, Expr::Ident(name) if name == "header" && !self.elements.contains(name))
    }

    fn all_headers(&self, expr: &IdedExpr) -> Mistake {
        let message = "`header` is all headers";
        Mistake::new(self.parsed.token(expr), message)
            .help("one of them is `header.NAME` or `header[\"NAME\"]`")
    }

    fn unknown(&self, expr: &IdedExpr, name: &str) -> Mistake {
        let elements = self.elements.iter().map(String::as_str);
        let is_alone = std::ptr::eq(expr, self.parsed.root());
        let words = WORDS.into_iter().filter(|_| is_alone);
        let help = suggest(name, words.chain(elements).chain(ROOTS));
        let help = match help.starts_with("one of") && !is_alone {
            true => format!("a text is written in quotes: \"{name}\""),
            false => help,
        };
        let message = format!("unknown name `{name}`");
        Mistake::new(self.parsed.token(expr), message).help(help)
    }

    /// `expr` as something that has parts: a key or value as a whole is JSON then.
    pub(super) fn json(&mut self, expr: &IdedExpr) -> Outcome<Term> {
        let (term, kind) = self.term(expr)?;
        match kind {
            Kind::Any | Kind::List => Ok(term),
            Kind::Bytes if !matches!(self.path(expr)?, Some(Path::Topic | Path::Header(_))) => {
                Ok(Term::Json(Box::new(term)))
            }
            _ => {
                let message = format!("{kind} has neither fields nor elements");
                Err(Mistake::new(self.parsed.whole(expr), message))
            }
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Outcome<Compiled> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_AND, [left, right]) => {
                let mut all = Vec::new();
                for side in [left, right] {
                    match self.condition(side)? {
                        Clause::All(list) => all.extend(list),
                        clause => all.push(clause),
                    }
                }
                Ok(Compiled::Clause(Clause::All(all)))
            }
            (operators::LOGICAL_OR, [left, right]) => {
                let mut any = Vec::new();
                for side in [left, right] {
                    match self.condition(side)? {
                        Clause::Any(list) => any.extend(list),
                        clause => any.push(clause),
                    }
                }
                Ok(Compiled::Clause(Clause::Any(any)))
            }
            (operators::LOGICAL_NOT, [inner]) => {
                let inner = self.condition(inner)?;
                Ok(Compiled::Clause(Clause::Not(Box::new(inner))))
            }
            (operators::EQUALS, [left, right]) => {
                self.equality(expr, left, right).map(Compiled::Clause)
            }
            (operators::NOT_EQUALS, [left, right]) => {
                let equal = self.equality(expr, left, right)?;
                Ok(Compiled::Clause(Clause::Not(Box::new(equal))))
            }
            (operators::GREATER, [left, right]) => self.order(Relation::Greater, left, right),
            (operators::GREATER_EQUALS, [left, right]) => {
                self.order(Relation::GreaterOrEqual, left, right)
            }
            (operators::LESS, [left, right]) => self.order(Relation::Less, left, right),
            (operators::LESS_EQUALS, [left, right]) => {
                self.order(Relation::LessOrEqual, left, right)
            }
            (operators::IN, [left, right]) => self.membership(left, right),
            (operators::ADD, [left, right]) => self.arithmetic(Arithmetic::Add, expr, left, right),
            (operators::SUBSTRACT, [left, right]) => {
                self.arithmetic(Arithmetic::Subtract, expr, left, right)
            }
            (operators::MULTIPLY, [left, right]) => {
                self.arithmetic(Arithmetic::Multiply, expr, left, right)
            }
            (operators::DIVIDE, [left, right]) => {
                self.arithmetic(Arithmetic::Divide, expr, left, right)
            }
            (operators::MODULO, [left, right]) => {
                self.arithmetic(Arithmetic::Remainder, expr, left, right)
            }
            (operators::NEGATE, [inner]) => self.negation(inner),
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                let condition = self.condition(condition)?;
                let (then, kind) = self.term(then)?;
                let (otherwise, other) = self.term(otherwise)?;
                let choice = Term::Choice(Box::new((condition, then, otherwise)));
                Ok(Compiled::Term(choice, kind.or(other)))
            }
            (operators::INDEX, [of, index]) => self.index(expr, of, index),
            _ => self.function(expr, call),
        }
    }

    fn equality(&mut self, expr: &IdedExpr, left: &IdedExpr, right: &IdedExpr) -> Outcome<Clause> {
        let ((left, l), (right, r)) = (self.term(left)?, self.term(right)?);
        if !l.may_equal(r) {
            let message = format!("{l} is never {r}");
            return Err(Mistake::new(self.parsed.whole(expr), message));
        }
        Ok(match (left, right) {
            (Term::Field(slot), Term::Literal(literal))
            | (Term::Literal(literal), Term::Field(slot)) => {
                Clause::Test(slot, Operator::In(vec![literal]))
            }
            (left, right) => Clause::Compare(Box::new(Comparison::Equal(left, right))),
        })
    }

    fn order(
        &mut self,
        relation: Relation,
        left: &IdedExpr,
        right: &IdedExpr,
    ) -> Outcome<Compiled> {
        let sides = [left, right];
        let ((left, l), (right, r)) = (self.term(left)?, self.term(right)?);
        for (side, kind) in sides.into_iter().zip([l, r]) {
            if !kind.has_order() {
                let message = format!("an order takes numbers or texts, this is {kind}");
                return Err(Mistake::new(self.parsed.whole(side), message));
            }
        }
        if !l.may_equal(r) {
            let message = format!("{l} and {r} have no order");
            let (start, end) = (self.parsed.whole(sides[0]), self.parsed.whole(sides[1]));
            return Err(Mistake::new(start.start..end.end, message));
        }
        Ok(Compiled::Clause(match (left, right) {
            (Term::Field(slot), Term::Literal(literal)) => {
                Clause::Test(slot, Operator::Order(relation, literal))
            }
            (Term::Literal(literal), Term::Field(slot)) => {
                Clause::Test(slot, Operator::Order(relation.mirrored(), literal))
            }
            (left, right) => Clause::Compare(Box::new(Comparison::Order(relation, left, right))),
        }))
    }

    fn membership(&mut self, left: &IdedExpr, right: &IdedExpr) -> Outcome<Compiled> {
        if self.is_header(right) {
            let Expr::Literal(LiteralValue::String(name)) = &left.expr else {
                let message = "the name of a header is a text that is written out";
                return Err(Mistake::new(self.parsed.whole(left), message));
            };
            let slot = self.fields.slot(&Path::Header(name.inner().to_owned()));
            return Ok(Compiled::Clause(Clause::Test(slot, Operator::Exists)));
        }
        let (left, _) = self.term(left)?;
        let right = self.json(right)?;
        Ok(match (left, literals(right)) {
            (Term::Field(slot), Ok(literals)) => {
                Compiled::Clause(Clause::Test(slot, Operator::In(literals)))
            }
            (left, Ok(literals)) => {
                let list = literals.into_iter().map(Term::Literal).collect();
                Compiled::comparison(Comparison::In(left, Term::List(list)))
            }
            (left, Err(right)) => Compiled::comparison(Comparison::In(left, right)),
        })
    }

    fn arithmetic(
        &mut self,
        operation: Arithmetic,
        expr: &IdedExpr,
        left: &IdedExpr,
        right: &IdedExpr,
    ) -> Outcome<Compiled> {
        let sides = [left, right];
        let ((left, l), (right, r)) = (self.term(left)?, self.term(right)?);
        let numbers = l.may_be_number() && r.may_be_number();
        let texts = operation == Arithmetic::Add && l.may_be_text() && r.may_be_text();
        if !numbers && !texts {
            let wrong = if l.may_be_number() { 1 } else { 0 };
            return Err(self.cannot_calculate(operation, sides, wrong, [l, r]));
        }
        let kind = match (numbers, texts) {
            (true, false) => Kind::Number,
            (false, _) => Kind::Text,
            (true, true) => Kind::Any,
        };
        if let (Term::Literal(left), Term::Literal(right)) = (&left, &right) {
            let folded = operation.apply(left, right);
            let folded = folded.map_err(|f| Mistake::new(self.parsed.whole(expr), f.detail))?;
            return Ok(Compiled::Term(Term::Literal(folded), kind));
        }
        let calculate = Term::Calculate(operation, Box::new((left, right)));
        Ok(Compiled::Term(calculate, kind))
    }

    fn cannot_calculate(
        &self,
        operation: Arithmetic,
        sides: [&IdedExpr; 2],
        wrong: usize,
        kinds: [Kind; 2],
    ) -> Mistake {
        let (wrong, kind) = (sides[wrong], kinds[wrong]);
        let place = self.parsed.whole(wrong);
        let sign = operation.sign();
        if kind.may_be_text() {
            let message = format!("`{sign}` of a text and a number: a text is no number");
            let message = match operation {
                Arithmetic::Add => message,
                _ => format!("`{sign}` takes numbers, this is {kind}"),
            };
            return Mistake::new(place, message)
                .help("`int(…)` and `double(…)` read a number, `string(…)` writes one");
        }
        Mistake::new(place, format!("`{sign}` does not take {kind}"))
    }

    fn negation(&mut self, inner: &IdedExpr) -> Outcome<Compiled> {
        let (term, kind) = self.term(inner)?;
        if !kind.may_be_number() {
            let message = format!("`-` takes a number, this is {kind}");
            return Err(Mistake::new(self.parsed.whole(inner), message));
        }
        let negated = match &term {
            Term::Literal(literal) => negate(literal).ok().map(Term::Literal),
            _ => None,
        };
        let negated = negated.unwrap_or_else(|| Term::Negate(Box::new(term)));
        Ok(Compiled::Term(negated, Kind::Number))
    }

    fn index(&mut self, expr: &IdedExpr, of: &IdedExpr, index: &IdedExpr) -> Outcome<Compiled> {
        if let Some(path) = self.path(expr)? {
            let kind = Kind::of_path(&path);
            return Ok(Compiled::Term(Term::Field(self.fields.slot(&path)), kind));
        }
        let container = self.json(of)?;
        let (at, kind) = self.term(index)?;
        if let Kind::Null | Kind::Bool | Kind::List = kind {
            let message = format!("an index is an integer or a text, this is {kind}");
            return Err(Mistake::new(self.parsed.whole(index), message));
        }
        let at = Term::At(Box::new((container, at)));
        Ok(Compiled::Term(at, Kind::Any))
    }
}

/// A list of literals as their fields, anything else as it is.
fn literals(term: Term) -> Result<Vec<Field<'static>>, Term> {
    let Term::List(terms) = term else {
        return Err(term);
    };
    let fields = terms.iter().map(|term| match term {
        Term::Literal(field) => Some(field.clone()),
        _ => None,
    });
    match fields.collect() {
        Some(fields) => Ok(fields),
        None => Err(Term::List(terms)),
    }
}

/// A decimal as JSON spells it: the token has no sign, and may begin with its point.
fn spelled(token: &str, double: f64) -> String {
    let sign = if double.is_sign_negative() { "-" } else { "" };
    let zero = if token.starts_with('.') { "0" } else { "" };
    format!("{sign}{zero}{token}")
}
