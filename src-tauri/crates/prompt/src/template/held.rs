//! Lists and objects of templates. Each knows how deeply it is nested and what it weighs with all it holds, so that
//! neither a walk over it nor its end takes more stack or time than is known before.
//!
//! minijinja's own containers know nothing of themselves: the conversation is made of these, literals are made to be
//! these, and whatever a call returns becomes one.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Tuple, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;

use super::meter::{charge, step, too_heavy, work, ITEM};

/// The deepest nesting of values. JSON is read to a depth of 128, and templates add a handful.
pub(super) const DEPTH: usize = 200;
/// The deepest nesting of a conversation's variables.
const CONVERSATION: usize = 150;

/// The depth, weight and kind of a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    depth: usize,
    /// Bytes, those of everything it holds included as often as it is held.
    pub(super) weight: usize,
    /// It is or holds a namespace, a loop or another value whose content changes.
    changes: bool,
}

impl Mark {
    /// Of any value. A container that is not one of ours is walked over.
    pub(super) fn of(value: &Value) -> Result<Self, Error> {
        Self::below(value, 0)
    }

    fn below(value: &Value, level: usize) -> Result<Self, Error> {
        let Some(object) = value.as_object() else {
            return Ok(Self::leaf(value.as_str().map_or(0, str::len)));
        };
        if let Some(list) = object.downcast_ref::<List>() {
            return Ok(list.mark);
        }
        if let Some(map) = object.downcast_ref::<Map>() {
            return Ok(map.mark);
        }
        if object.downcast_ref::<Range>().is_some() {
            return Ok(Self::leaf(0));
        }
        work(0)?;
        if level > DEPTH {
            return Err(too_deep());
        }
        if let Some(tuple) = object.downcast_ref::<Tuple>() {
            return Self::around(tuple.iter(), level);
        }
        match nature(object) {
            Nature::List => {
                let items: Vec<Value> = object.try_iter().into_iter().flatten().collect();
                Self::around(items.iter(), level)
            }
            Nature::Map => {
                let pairs = object.try_iter_pairs().into_iter().flatten();
                let items: Vec<Value> = pairs.flat_map(|(key, value)| [key, value]).collect();
                Self::around(items.iter(), level)
            }
            nature => Ok(Self {
                changes: nature == Nature::Changing,
                ..Self::leaf(0)
            }),
        }
    }

    fn leaf(bytes: usize) -> Self {
        Self {
            weight: ITEM + bytes,
            ..Self::default()
        }
    }

    /// Of a container of these.
    fn around<'a>(items: impl Iterator<Item = &'a Value>, level: usize) -> Result<Self, Error> {
        let mut all = Self::leaf(0);
        for item in items {
            all.add(Self::below(item, level + 1)?)?;
        }
        all.depth += 1;
        match all.depth > DEPTH {
            true => Err(too_deep()),
            false => Ok(all),
        }
    }

    fn add(&mut self, item: Self) -> Result<(), Error> {
        self.depth = self.depth.max(item.depth);
        self.weight = self.weight.saturating_add(item.weight);
        self.changes |= item.changes;
        too_heavy(self.weight)
    }

    /// Bytes that a walk over the value reads now: what changes is walked over to know it.
    pub(super) fn weight_now(value: &Value) -> Result<usize, Error> {
        let mark = Self::of(value)?;
        match mark.changes {
            true => weight_of_changing(value, 0),
            false => Ok(mark.weight),
        }
    }
}

fn weight_of_changing(value: &Value, level: usize) -> Result<usize, Error> {
    work(0)?;
    let mark = Mark::of(value)?;
    let Some(object) = value.as_object().filter(|_| mark.changes) else {
        return Ok(mark.weight);
    };
    if level > 2 * DEPTH {
        return Err(too_deep());
    }
    let mut weight = ITEM;
    for (key, item) in object.try_iter_pairs().into_iter().flatten() {
        weight = weight
            .saturating_add(weight_of_changing(&key, level + 1)?)
            .saturating_add(weight_of_changing(&item, level + 1)?);
    }
    Ok(weight)
}

#[cold]
fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, "values are nested too deeply")
}

/// The nature of an object that is not ours. minijinja's types have no public names, so an unknown one may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    List,
    Map,
    /// A function or a macro, which holds no values.
    Callable,
    /// Its content changes or cannot be seen: a namespace, a loop, a cycler.
    Changing,
}

fn nature(object: &DynObject) -> Nature {
    let name = object.type_name();
    let is_one_of = |known: &[&str]| known.iter().any(|part| name.contains(part));
    match object.repr() {
        ObjectRepr::Seq | ObjectRepr::Iterable => Nature::List,
        _ if is_one_of(&["BoxedFunction", "macro_object::Macro"]) => Nature::Callable,
        ObjectRepr::Map if is_one_of(&["IndexMap", "BTreeMap", "MergeDict", "Kwargs"]) => Nature::Map,
        _ => Nature::Changing,
    }
}

/// A list, or what a filter gives one by one.
pub(super) struct List {
    items: Vec<Value>,
    mark: Mark,
    kind: ListKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListKind {
    List,
    /// An iterator in Python.
    Iterator,
    /// A pair of `groupby`, whose parts have names.
    Group,
}

/// An object.
pub(super) struct Map {
    fields: DynObject,
    mark: Mark,
}

/// The numbers of `range`.
pub(super) struct Range {
    start: i64,
    step: i64,
    count: usize,
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<list of {}>", self.items.len())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<object>")
    }
}

impl fmt::Debug for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<range of {}>", self.count)
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.kind {
            ListKind::Iterator => ObjectRepr::Iterable,
            ListKind::List | ListKind::Group => ObjectRepr::Seq,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let position = match key.as_str() {
            None => key.as_usize(),
            Some("grouper") if self.kind == ListKind::Group => Some(0),
            Some("list") if self.kind == ListKind::Group => Some(1),
            Some(_) => None,
        };
        let item = self.items.get(position?)?;
        step(0).or_else(|| Some(item.clone()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items.len())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

impl Object for Map {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        step(key.as_str().map_or(0, str::len)).or_else(|| self.fields.get_value(key))
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        step(key.len()).or_else(|| self.fields.get_value_by_str(key))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if let Some(error) = step(0) {
            return Enumerator::Values(vec![error]);
        }
        match self.fields.enumerate() {
            Enumerator::RevKeyValueIter(pairs) => Enumerator::RevKeyValueIter(Box::new(pairs.inspect(|_| {
                // An error shows at the next step that can tell.
                let _ = step(0);
            }))),
            other => other,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.fields.enumerator_len()
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let (start, by) = (self.start, self.step);
        let number = move |position: usize| {
            let number = start.saturating_add(by.saturating_mul(position as i64));
            step(0).unwrap_or_else(|| number.into())
        };
        Enumerator::RevIter(Box::new((0..self.count).map(number)))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.count)
    }
}

/// `range(stop)`, `range(start, stop, step)`.
pub(super) fn range(start: i64, stop: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    /// As many as minijinja's.
    const MOST: i128 = 100_000;
    let (start, stop) = stop.map_or((0, start), |stop| (start, stop));
    let step = step.unwrap_or(1);
    let refused = |reason| Error::new(ErrorKind::InvalidOperation, reason);
    if step == 0 {
        return Err(refused("cannot create range with step of 0"));
    }
    let (way, by) = (i128::from(stop) - i128::from(start), i128::from(step));
    let count = if (way > 0) == (by > 0) {
        (way.abs() + by.abs() - 1) / by.abs()
    } else {
        0
    };
    match usize::try_from(count) {
        Ok(count) if i128::try_from(count).is_ok_and(|count| count <= MOST) => {
            Ok(Value::from_object(Range { start, step, count }))
        }
        _ => Err(refused("range has too many elements")),
    }
}

/// A list of these.
pub(super) fn list(items: Vec<Value>) -> Result<Value, Error> {
    list_of(items, ListKind::List)
}

fn list_of(items: Vec<Value>, kind: ListKind) -> Result<Value, Error> {
    charge(ITEM.saturating_mul(items.len() + 1))?;
    let mark = Mark::around(items.iter(), 0)?;
    Ok(Value::from_object(List { items, mark, kind }))
}

/// A tuple of these. It stays minijinja's, which tells tuples from lists by their type.
pub(super) fn tuple(items: Vec<Value>) -> Result<Value, Error> {
    charge(ITEM.saturating_mul(items.len() + 1))?;
    Mark::around(items.iter(), 0)?;
    Ok(Tuple::from(items).into())
}

fn map(pairs: Vec<(Value, Value)>) -> Result<Value, Error> {
    charge(2 * ITEM.saturating_mul(pairs.len() + 1))?;
    let mark = Mark::around(pairs.iter().flat_map(|(key, value)| [key, value]), 0)?;
    Ok(map_of(pairs, mark))
}

fn map_of(pairs: Vec<(Value, Value)>, mark: Mark) -> Value {
    let fields = Value::from_pairs(pairs);
    match fields.as_object().cloned() {
        Some(fields) => Value::from_object(Map { fields, mark }),
        None => fields,
    }
}

/// A value that a literal or a call made, with containers of ours in the place of minijinja's.
pub(super) fn adopt(value: Value) -> Result<Value, Error> {
    adopt_below(value, 0)
}

fn adopt_below(value: Value, level: usize) -> Result<Value, Error> {
    let Some(object) = value.as_object() else {
        return Ok(value);
    };
    if object.downcast_ref::<List>().is_some()
        || object.downcast_ref::<Map>().is_some()
        || object.downcast_ref::<Range>().is_some()
    {
        return Ok(value);
    }
    if level > DEPTH {
        return Err(too_deep());
    }
    let adopted = |items: &mut dyn Iterator<Item = Value>| -> Result<Vec<Value>, Error> {
        items
            .map(|item| {
                work(0)?;
                // An error in the place of an item is found when it is iterated over.
                adopt_below(item, level + 1)
            })
            .collect()
    };
    if object.downcast_ref::<Tuple>().is_some() {
        return tuple(adopted(&mut object.try_iter().into_iter().flatten())?);
    }
    match nature(object) {
        Nature::List => {
            let Some(mut items) = object.try_iter() else {
                return Ok(value);
            };
            let kind = match object.repr() {
                ObjectRepr::Iterable => ListKind::Iterator,
                _ if object.get_value_by_str("grouper").is_some() => ListKind::Group,
                _ => ListKind::List,
            };
            list_of(adopted(&mut items)?, kind)
        }
        Nature::Map => {
            let mut pairs = Vec::new();
            for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                work(0)?;
                pairs.push((adopt_below(key, level + 1)?, adopt_below(item, level + 1)?));
            }
            map(pairs)
        }
        Nature::Callable | Nature::Changing => Ok(value),
    }
}

/// A value that may be kept in what changes: nothing in it changes, so it can neither hold itself nor grow unseen.
pub(super) fn keep(value: &Value) -> Result<(), Error> {
    match Mark::of(value)?.changes {
        true => Err(Error::new(
            ErrorKind::InvalidOperation,
            "a namespace cannot hold a namespace or a loop",
        )),
        false => Ok(()),
    }
}

/// The variables of a conversation, and their weight.
pub(super) fn variables(fields: &serde_json::Map<String, Json>) -> Result<(Value, usize), Error> {
    let (value, mark) = object(fields, 0)?;
    Ok((value, mark.weight))
}

fn json(value: &Json, level: usize) -> Result<(Value, Mark), Error> {
    let leaf = |value: Value| Ok((value, Mark::leaf(0)));
    match value {
        Json::Null => leaf(().into()),
        Json::Bool(truth) => leaf((*truth).into()),
        Json::Number(number) => leaf(match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(whole)) => whole.into(),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into(),
        }),
        Json::String(text) => Ok((text.as_str().into(), Mark::leaf(text.len()))),
        Json::Array(list) => {
            let (mut items, mut mark) = (Vec::with_capacity(list.len()), Mark::leaf(0));
            for item in list {
                items.push(held(item, level, &mut mark)?);
            }
            mark.depth += 1;
            let kind = ListKind::List;
            Ok((Value::from_object(List { items, mark, kind }), mark))
        }
        Json::Object(fields) => object(fields, level),
    }
}

fn object(fields: &serde_json::Map<String, Json>, level: usize) -> Result<(Value, Mark), Error> {
    let (mut pairs, mut mark) = (Vec::with_capacity(fields.len()), Mark::leaf(0));
    for (key, item) in fields {
        mark.weight = mark.weight.saturating_add(ITEM + key.len());
        pairs.push((Value::from(key.as_str()), held(item, level, &mut mark)?));
    }
    mark.depth += 1;
    Ok((map_of(pairs, mark), mark))
}

fn held(item: &Json, level: usize, mark: &mut Mark) -> Result<Value, Error> {
    if level >= CONVERSATION {
        return Err(too_deep());
    }
    let (value, of_item) = json(item, level + 1)?;
    mark.add(of_item)?;
    Ok(value)
}
