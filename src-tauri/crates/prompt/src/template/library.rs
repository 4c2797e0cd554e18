//! Everything that templates can call: minijinja's filters, tests and functions and our own. Each call is counted here,
//! by what goes in, before it is made; what comes out is made a value that knows its size.

use minijinja::functions::Function;
use minijinja::value::{from_args, FunctionArgs, FunctionResult, Kwargs, Rest, Value, ValueOrKwargs};
use minijinja::{filters, functions, tests, Environment, Error, ErrorKind, State};

use super::held::{adopt, keep, range, Mark};
use super::meter::{charge, work, ITEM};

/// The longest path of attributes, which is read for each item.
pub(super) const LONGEST_PATH: usize = 1000;
/// The most parts that `batch` and `slice` make.
const MOST_PARTS: usize = 100_000;

/// The part of its input that a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// The kind of a value, its length, its first item.
    Glance,
    /// The letters of a text, the items of a list.
    Items,
    /// The same one by one, so that each letter of a text becomes a value.
    Each,
    /// All that a value holds.
    All,
    /// The same, several times: it is sorted, or looked for in what was there before.
    Sorted,
}

impl Cost {
    fn of(self, value: &Value) -> Result<usize, Error> {
        if let Some(text) = value.as_str() {
            if matches!(self, Self::Each | Self::Sorted) {
                charge(text.len().saturating_mul(ITEM))?;
            }
            return Ok(match self {
                // Half the price of a letter that is looked at.
                Self::Glance => text.len() / 16,
                _ => text.len(),
            });
        }
        if value.as_object().is_none() {
            return Ok(0);
        }
        Ok(match self {
            Self::Glance => 0,
            Self::Items | Self::Each => value.len().unwrap_or(0).saturating_mul(ITEM),
            Self::All => Mark::weight_now(value)?,
            // Letters are folded for each comparison.
            Self::Sorted => Mark::weight_now(value)?
                .saturating_mul(1 + value.len().unwrap_or(0).max(1).ilog2() as usize)
                .saturating_mul(4),
        })
    }
}

/// Counts what a call reads.
pub(super) fn read(args: &[Value], cost: Cost) -> Result<(), Error> {
    let mut bytes = 0usize;
    for value in args {
        bytes = bytes.saturating_add(cost.of(value)?);
    }
    work(bytes)
}

/// A call that is counted.
fn counted(inner: Value, cost: Cost) -> impl Fn(&mut State, Rest<ValueOrKwargs>) -> Result<Value, Error> {
    move |state, args| {
        let args = args.into_values();
        read(&args, cost)?;
        let result = inner.call(state, &args)?;
        match result.as_str() {
            Some(text) => work(text.len()).map(|()| result),
            None => adopt(result),
        }
    }
}

/// An environment that gets what templates can call.
pub(super) struct Library<'a>(pub(super) &'a mut Environment<'static>);

impl Library<'_> {
    pub(super) fn filter<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.0.add_filter(name, counted(Value::from_function(filter), cost));
    }

    pub(super) fn test<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, test: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.0.add_test(name, counted(Value::from_function(test), cost));
    }

    pub(super) fn function<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, function: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        self.0.add_function(name, counted(Value::from_function(function), cost));
    }

    /// A function whose result holds what it is given, and changes.
    fn keeper<F, Rv, Args>(&mut self, name: &'static str, function: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let inner = Value::from_function(function);
        self.function(
            name,
            Cost::Items,
            move |state: &mut State, args: Rest<ValueOrKwargs>| {
                let args = args.into_values();
                args.iter().try_for_each(keep)?;
                charge(ITEM.saturating_mul(args.len() + 1))?;
                inner.call(state, &args)
            },
        );
    }

    /// A filter that reads an attribute, given as a path, of each item.
    fn of_each<F, Rv, Args>(&mut self, name: &'static str, cost: Cost, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let inner = Value::from_function(filter);
        self.filter(name, cost, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let (_, first, rest): (&Value, Option<ValueOrKwargs>, Rest<ValueOrKwargs>) = from_args(&args)?;
            let named = |value: &Value| value.as_object()?.get_value_by_str("attribute");
            let paths = first.iter().chain(rest.iter()).filter_map(|value| named(value));
            let longest = paths
                .chain(first.as_deref().cloned())
                .filter_map(|path| path.as_str().map(str::len));
            if longest.max().is_some_and(|length| length > LONGEST_PATH) {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "the name of an attribute is too long",
                ));
            }
            inner.call(state, &args)
        });
    }

    /// A filter whose second argument says how many parts it makes.
    fn parts<F, Rv, Args>(&mut self, name: &'static str, filter: F)
    where
        F: Function<Rv, Args>,
        Rv: FunctionResult,
        Args: for<'a> FunctionArgs<'a>,
    {
        let inner = Value::from_function(filter);
        self.filter(
            name,
            Cost::Items,
            move |state: &mut State, args: Rest<ValueOrKwargs>| {
                let args = args.into_values();
                let (_, count, _): (&Value, usize, Rest<ValueOrKwargs>) = from_args(&args)?;
                if count > MOST_PARTS {
                    return Err(Error::new(ErrorKind::InvalidOperation, "too many parts"));
                }
                charge(ITEM.saturating_mul(count))?;
                inner.call(state, &args)
            },
        );
    }
}

/// Adds what minijinja brings and jinja2 has too, unless it is ours.
pub(super) fn add_minijinjas(library: &mut Library) {
    use Cost::{All, Each, Glance, Items, Sorted};
    library.filter("safe", Items, filters::safe);
    library.filter("capitalize", Items, filters::capitalize);
    library.filter("dictsort", Sorted, filters::dictsort);
    library.filter("items", Items, filters::items);
    library.filter("reverse", Items, filters::reverse);
    library.filter("split", Items, filters::split);
    library.filter("lines", Items, filters::lines);
    library.filter("round", Glance, filters::round);
    library.filter("abs", Glance, filters::abs);
    library.filter("attr", Items, filters::attr);
    library.filter("first", Glance, filters::first);
    library.filter("last", Items, filters::last);
    library.filter("min", All, filters::min);
    library.filter("max", All, filters::max);
    library.of_each("sort", Sorted, filters::sort);
    library.filter("list", Each, filters::list);
    library.filter("bool", Glance, filters::bool);
    library.parts("batch", filters::batch);
    library.parts("slice", filters::slice);
    library.filter("select", Each, filters::select);
    library.filter("reject", Each, filters::reject);
    library.of_each("selectattr", Each, filters::selectattr);
    library.of_each("rejectattr", Each, filters::rejectattr);
    library.of_each("map", Each, filters::map);
    library.of_each("groupby", Sorted, filters::groupby);
    library.of_each("unique", Sorted, filters::unique);
    library.filter("chain", Each, filters::chain);
    library.filter("zip", Each, filters::zip);

    library.test("undefined", Glance, tests::is_undefined);
    library.test("defined", Glance, tests::is_defined);
    library.test("none", Glance, tests::is_none);
    library.test("boolean", Glance, tests::is_boolean);
    library.test("odd", Glance, tests::is_odd);
    library.test("even", Glance, tests::is_even);
    library.test("divisibleby", Glance, tests::is_divisibleby);
    library.test("number", Glance, tests::is_number);
    for name in ["integer", "int"] {
        library.test(name, Glance, tests::is_integer);
    }
    library.test("float", Glance, tests::is_float);
    library.test("string", Glance, tests::is_string);
    library.test("mapping", Glance, tests::is_mapping);
    library.test("startingwith", Items, tests::is_startingwith);
    library.test("endingwith", Items, tests::is_endingwith);
    library.test("lower", Items, tests::is_lower);
    library.test("upper", Items, tests::is_upper);
    library.test("sameas", Items, tests::is_sameas);
    for name in ["safe", "escaped"] {
        library.test(name, Glance, tests::is_safe);
    }
    for name in ["eq", "equalto", "=="] {
        library.test(name, All, tests::is_eq);
    }
    for name in ["ne", "!="] {
        library.test(name, All, tests::is_ne);
    }
    for name in ["lt", "lessthan", "<"] {
        library.test(name, All, tests::is_lt);
    }
    for name in ["le", "<="] {
        library.test(name, All, tests::is_le);
    }
    for name in ["gt", "greaterthan", ">"] {
        library.test(name, All, tests::is_gt);
    }
    for name in ["ge", ">="] {
        library.test(name, All, tests::is_ge);
    }
    library.test("in", All, tests::is_in);
    library.test("true", Glance, tests::is_true);
    library.test("false", Glance, tests::is_false);
    library.test("filter", Items, tests::is_filter);
    library.test("test", Items, tests::is_test);

    library.function("range", Glance, range);
    library.function("dict", Items, functions::dict);
    library.keeper("namespace", functions::namespace);
    library.keeper("cycler", minijinja_contrib::globals::cycler);
    library.keeper("joiner", minijinja_contrib::globals::joiner);
}

/// `value|sum(attribute, start)`, which adds as `+` does.
pub(super) fn sum(
    add: fn(&Value, &Value) -> Result<Value, Error>,
) -> impl Fn(&Value, Option<&str>, Option<Value>, Kwargs) -> Result<Value, Error> {
    move |values, attribute, start, kwargs| {
        let attribute = attribute.or(kwargs.get("attribute")?);
        let start = start.or(kwargs.get("start")?).unwrap_or_else(|| 0.into());
        kwargs.assert_all_used()?;
        if attribute.is_some_and(|path| path.len() > LONGEST_PATH) {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "the name of an attribute is too long",
            ));
        }
        let mut total = start;
        for item in values.try_iter()? {
            let item = attribute.map_or(Ok(item.clone()), |path| {
                path.split('.').try_fold(item, |item, name| item.get_attr(name))
            });
            match item.unwrap_or_default() {
                item if item.is_undefined() => {}
                item => total = add(&total, &item)?,
            }
        }
        Ok(total)
    }
}
