//! Functions and methods: which there are, and what they take.

use super::compile::{Compiled, Compiler, Outcome};
use super::kind::Kind;
use super::parse::Mistake;
use super::term::{Collect, Comparison, Function, Quantity, Term, TextTest};
use crate::handler::fault::suggest;
use crate::handler::operator::{Operator, whole_text};
use crate::handler::path::Field;
use crate::handler::predicate::Clause;
use cel::common::ast::{CallExpr, Expr, IdedExpr};

/// The functions, as `f(x)`.
const FUNCTIONS: [&str; 5] = ["has", "size", "int", "double", "string"];
/// The methods, as `x.f(…)`.
const METHODS: [&str; 11] = [
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
];

impl Compiler<'_, '_> {
    /// A call of a function or a method.
    pub(super) fn function(&mut self, expr: &IdedExpr, call: &CallExpr) -> Outcome<Compiled> {
        let name = call.func_name.as_str();
        match (&call.target, call.args.as_slice()) {
            (None, [argument]) => match name {
                "has" => self.has(argument),
                "size" => self.size(argument),
                "int" => self.conversion(Function::Int, argument),
                "double" => self.conversion(Function::Double, argument),
                "string" => self.conversion(Function::String, argument),
                _ => Err(self.no_function(expr, call)),
            },
            (Some(target), []) if name == "size" => self.size(target),
            (Some(target), [argument]) => match name {
                "startsWith" => self.text(TextTest::StartsWith, target, argument),
                "endsWith" => self.text(TextTest::EndsWith, target, argument),
                "contains" => self.text(TextTest::Contains, target, argument),
                "matches" => self.matches(target, argument),
                _ => Err(self.no_function(expr, call)),
            },
            (Some(target), [element, rest @ ..]) => {
                self.of_elements(expr, call, target, element, rest)
            }
            _ => Err(self.no_function(expr, call)),
        }
    }

    /// Why there is no such call: the name, the number of arguments, or the form.
    fn no_function(&self, expr: &IdedExpr, call: &CallExpr) -> Mistake {
        let name = call.func_name.as_str();
        let place = self.parsed.function(expr, name);
        let is_function = FUNCTIONS.contains(&name);
        let is_method = METHODS.contains(&name);
        match (&call.target, is_function, is_method) {
            (None, true, _) => Mistake::new(place, format!("`{name}` takes one argument")),
            (Some(_), _, true) => {
                let takes = match name {
                    "size" => "takes no argument here",
                    "map" => "takes a name and what is made of it, or a name, a condition and that",
                    "all" | "exists" | "exists_one" | "existsOne" | "filter" => {
                        "takes a name and a condition: `list.all(x, x > 0)`"
                    }
                    _ => "takes one argument",
                };
                Mistake::new(place, format!("`{name}` {takes}"))
            }
            (None, false, true) => Mistake::new(place, format!("`{name}` is a method"))
                .help(format!("write `x.{name}(…)`")),
            (Some(_), true, false) => Mistake::new(place, format!("`{name}` is a function"))
                .help(format!("write `{name}(x)`")),
            (target, false, false) => {
                let help = match target {
                    None => suggest(name, FUNCTIONS),
                    Some(_) => suggest(name, METHODS),
                };
                Mistake::new(place, format!("unknown function `{name}`")).help(help)
            }
        }
    }

    fn has(&mut self, argument: &IdedExpr) -> Outcome<Compiled> {
        if let Some(path) = self.path(argument)? {
            let slot = self.fields.slot(&path);
            return Ok(Compiled::Clause(Clause::Test(slot, Operator::Exists)));
        }
        match &argument.expr {
            Expr::Literal(_) | Expr::List(_) | Expr::Map(_) => {
                let message = "`has` takes a field";
                Err(Mistake::new(self.parsed.whole(argument), message))
            }
            _ => {
                let term = self.value(argument)?;
                Ok(Compiled::comparison(Comparison::Has(term)))
            }
        }
    }

    fn size(&mut self, argument: &IdedExpr) -> Outcome<Compiled> {
        let (term, kind) = self.term(argument)?;
        if let Kind::Null | Kind::Bool | Kind::Number = kind {
            let message = format!("`size` takes a text, a list or an object, this is {kind}");
            return Err(Mistake::new(self.parsed.whole(argument), message));
        }
        let call = Term::Call(Function::Size, Box::new(term));
        Ok(Compiled::Term(call, Kind::Number))
    }

    fn conversion(&mut self, function: Function, argument: &IdedExpr) -> Outcome<Compiled> {
        let (term, kind) = self.term(argument)?;
        let is_wrong = match function {
            Function::String => matches!(kind, Kind::Null | Kind::List),
            _ => matches!(kind, Kind::Null | Kind::List | Kind::Bool),
        };
        if is_wrong {
            let message = format!("{kind} cannot be converted");
            return Err(Mistake::new(self.parsed.whole(argument), message));
        }
        let kind = match function {
            Function::String => Kind::Text,
            _ => Kind::Number,
        };
        Ok(Compiled::Term(Term::Call(function, Box::new(term)), kind))
    }

    fn text(
        &mut self,
        test: TextTest,
        target: &IdedExpr,
        argument: &IdedExpr,
    ) -> Outcome<Compiled> {
        let (text, kind) = self.term(target)?;
        let (part, part_kind) = self.term(argument)?;
        let may_be_list = test == TextTest::Contains && kind == Kind::List;
        if !kind.may_be_text() && !may_be_list {
            let message = format!("a text is expected, this is {kind}");
            return Err(Mistake::new(self.parsed.whole(target), message));
        }
        if !part_kind.may_be_text() && test != TextTest::Contains {
            let message = format!("a text is expected, this is {part_kind}");
            return Err(Mistake::new(self.parsed.whole(argument), message));
        }
        Ok(match (test, text, part) {
            (TextTest::Contains, Term::Field(slot), Term::Literal(part)) => {
                Compiled::Clause(Clause::Test(slot, Operator::Contains(part)))
            }
            (TextTest::StartsWith, Term::Field(slot), Term::Literal(Field::Text(part))) => {
                Compiled::Clause(Clause::Test(slot, Operator::StartsWith(part.into_owned())))
            }
            (TextTest::EndsWith, Term::Field(slot), Term::Literal(Field::Text(part))) => {
                Compiled::Clause(Clause::Test(slot, Operator::EndsWith(part.into_owned())))
            }
            (test, text, part) => Compiled::comparison(Comparison::Text(test, text, part)),
        })
    }

    fn matches(&mut self, target: &IdedExpr, pattern: &IdedExpr) -> Outcome<Compiled> {
        let (text, kind) = self.term(target)?;
        if let Kind::Null | Kind::Bool | Kind::List = kind {
            let message = format!("a text is expected, this is {kind}");
            return Err(Mistake::new(self.parsed.whole(target), message));
        }
        let place = self.parsed.whole(pattern);
        let (Term::Literal(Field::Text(pattern)), _) = self.term(pattern)? else {
            let message = "the pattern of `matches` is a text that is written out";
            return Err(Mistake::new(place, message));
        };
        let regex = whole_text(&pattern).map_err(|broken| {
            let message = format!("no regular expression: {}", broken.reason);
            Mistake::new(self.parsed.part(place, &pattern, broken.bytes), message)
        })?;
        Ok(match text {
            Term::Field(slot) => Compiled::Clause(Clause::Test(slot, Operator::Matches(regex))),
            text => Compiled::comparison(Comparison::Matches(text, regex)),
        })
    }

    /// `list.all(x, …)` and the others that name an element.
    fn of_elements(
        &mut self,
        expr: &IdedExpr,
        call: &CallExpr,
        target: &IdedExpr,
        element: &IdedExpr,
        rest: &[IdedExpr],
    ) -> Outcome<Compiled> {
        let quantity = match (call.func_name.as_str(), rest) {
            ("all", [_]) => Some(Quantity::All),
            ("exists", [_]) => Some(Quantity::Some),
            ("exists_one" | "existsOne", [_]) => Some(Quantity::One),
            ("map", [_] | [_, _]) | ("filter", [_]) => None,
            _ => return Err(self.no_function(expr, call)),
        };
        let Expr::Ident(name) = &element.expr else {
            let message = "a name for the element is expected here";
            return Err(Mistake::new(self.parsed.whole(element), message));
        };
        let list = self.json(target)?;
        self.elements.push(name.clone());
        let compiled = self.of_element(quantity, &call.func_name, list, rest);
        self.elements.pop();
        compiled
    }

    fn of_element(
        &mut self,
        quantity: Option<Quantity>,
        name: &str,
        list: Term,
        rest: &[IdedExpr],
    ) -> Outcome<Compiled> {
        let (keep, make) = match (quantity, name, rest) {
            (Some(quantity), _, [condition]) => {
                let condition = self.condition(condition)?;
                let each = Comparison::Each(quantity, list, condition);
                return Ok(Compiled::comparison(each));
            }
            (_, "map", [make]) => (None, Some(self.value(make)?)),
            (_, "map", [keep, make]) => (Some(self.condition(keep)?), Some(self.value(make)?)),
            (_, _, [keep, ..]) => (Some(self.condition(keep)?), None),
            _ => (None, None),
        };
        let collect = Term::Collect(Box::new(Collect { list, keep, make }));
        Ok(Compiled::Term(collect, Kind::List))
    }
}
