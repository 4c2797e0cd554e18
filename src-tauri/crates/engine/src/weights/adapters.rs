//! Adapters of a model: low-rank additions beside its products, several at a time, of which one is active.
//!
//! The projections, experts and embeddings of a model register as places when they are loaded. An adapter that is attached
//! later finds them by their paths; the weights stay as they are, so that a model and its adapters share them.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use checkpoint::{Adapter, Addition, Header};
use mlx::ops::{concatenate, join};
use mlx::tensor::{eval, Tensor};
use mlx::Dtype;

use super::experts::PREFIXES;
use super::file_tensors::{file_tensors, StoredTensor};
use super::renamed;
use crate::error::{Error, Result};

/// One of the projections that are joined at a place.
pub struct AdapterPart {
    /// Its path in the model.
    pub path: String,
    /// Other paths that adapters may have for it.
    pub aliases: Vec<String>,
    /// Its number of outputs.
    pub outputs: i32,
    /// The rows of the checkpoint in the order they are used; unchanged if `None`.
    pub order: Option<Tensor>,
}

impl AdapterPart {
    /// A projection of the experts of the feed-forward at `path`, by the name that the modules of mlx-lm have for it.
    pub fn of_experts(path: &str, name: &str, outputs: i32) -> Self {
        let [first, aliases @ ..] = PREFIXES.map(|place| format!("{path}.{place}.{name}"));
        Self {
            path: first,
            aliases: aliases.into(),
            outputs,
            order: None,
        }
    }

    /// The addition of an adapter to it, which is taken out of those that are wanted.
    fn find<'a>(&self, wanted: &mut HashMap<String, &'a Addition>) -> Option<&'a Addition> {
        let mut paths = std::iter::once(&self.path).chain(&self.aliases);
        paths.find_map(|path| wanted.remove(path))
    }
}

/// The kind of a layer that an adapter adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A product with a matrix.
    Matrix,
    /// Products with this many matrices, one for each expert.
    Experts(i32),
    /// The rows of a table: its inputs are the tokens.
    Table,
}

/// A product that adapters can add to.
pub struct AdapterPlace {
    kind: PlaceKind,
    parts: Vec<AdapterPart>,
    inputs: i32,
    active: Rc<Cell<Option<usize>>>,
    /// By the adapters' numbers; `None` for one that leaves this product alone.
    additions: RefCell<Vec<Option<Rc<LowRank>>>>,
}

impl AdapterPlace {
    /// The kind of its layer.
    pub fn kind(&self) -> PlaceKind {
        self.kind
    }

    /// The addition of the active adapter.
    pub fn addition(&self) -> Option<Rc<LowRank>> {
        self.additions.borrow().get(self.active.get()?)?.clone()
    }
}

/// The addition of an adapter to a product of joined projections.
pub struct LowRank {
    /// `[inputs, ranks]`, or one for each expert.
    down: Tensor,
    /// `[ranks, outputs]`, times the scale, or one for each expert.
    up: Tensor,
    /// The lengths `[outputs]` that the rows of each part shall have, for DoRA; empty if no part has any.
    magnitudes: Vec<(i32, Option<Tensor>)>,
    /// The factors `[1, outputs]` that give the rows those lengths.
    factors: OnceCell<Tensor>,
}

impl LowRank {
    /// `y` `[length, outputs]`, the product of `x` `[length, inputs]` without its bias, with the addition. `rows` gives
    /// the weight `[outputs, inputs]` in 32 bit floats.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn add(&self, x: &Tensor, y: &Tensor, rows: impl FnOnce() -> mlx::Result<Tensor>) -> mlx::Result<Tensor> {
        let addition = x.matmul(&self.down)?.matmul(&self.up)?;
        let sum = y.add(&addition.astype(y.dtype())?)?;
        if self.magnitudes.is_empty() {
            return Ok(sum);
        }
        if self.factors.get().is_none() {
            let factors = self.lengths(&rows()?)?;
            eval([&factors])?;
            // One thread owns this, and the value was missing.
            let _ = self.factors.set(factors);
        }
        match self.factors.get() {
            Some(factors) => sum.mul(&factors.astype(y.dtype())?),
            None => Ok(sum),
        }
    }

    /// `y`, the products of `rows` `[…, 1, inputs]` with the experts of `indices`, with the addition.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn add_gathered(&self, rows: &Tensor, y: &Tensor, indices: &Tensor, sorted: bool) -> mlx::Result<Tensor> {
        let low = rows.gather_mm(&self.down, indices, sorted)?;
        y.add(&low.gather_mm(&self.up, indices, sorted)?.astype(y.dtype())?)
    }

    /// `y` `[length, width]`, the rows of a table for `ids` `[length]`, with the addition.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn add_rows(&self, ids: &Tensor, y: &Tensor) -> mlx::Result<Tensor> {
        y.add(&self.down.take(ids, 0)?.matmul(&self.up)?.astype(y.dtype())?)
    }

    /// `y` `[length, tokens]`, the product of `x` `[length, width]` with the rows of a table, with the addition.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn add_turned(&self, x: &Tensor, y: &Tensor) -> mlx::Result<Tensor> {
        let low = x.matmul(&self.up.swapaxes(0, 1)?)?;
        y.add(&low.matmul(&self.down.swapaxes(0, 1)?)?.astype(y.dtype())?)
    }

    /// The wanted length of each row over the length that the addition leaves it, `[1, outputs]`; 1 for parts without.
    fn lengths(&self, rows: &Tensor) -> mlx::Result<Tensor> {
        let added = self.down.matmul(&self.up)?.swapaxes(0, 1)?;
        let inverse = rows.add(&added)?.square()?.sum(1, false)?.rsqrt()?;
        let mut from = 0;
        let factors = self.magnitudes.iter().map(|(outputs, magnitude)| {
            let (start, end) = (from, from + outputs);
            from = end;
            match magnitude {
                Some(magnitude) => magnitude.mul(&inverse.slice(0, start, end)?),
                None => Ok(Tensor::from_f32(&vec![1.0; *outputs as usize], &[*outputs])),
            }
        });
        let factors = factors.collect::<mlx::Result<Vec<_>>>()?;
        let all: i32 = self.magnitudes.iter().map(|(outputs, _)| outputs).sum();
        join(&factors, 0)?.reshape(&[1, all])
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let magnitudes = self.magnitudes.iter().filter_map(|(_, magnitude)| magnitude.as_ref());
        [&self.down, &self.up].into_iter().chain(magnitudes)
    }
}

/// The places of a model that adapters can add to.
#[derive(Default)]
pub struct AdapterPlaces {
    active: Rc<Cell<Option<usize>>>,
    places: Vec<Rc<AdapterPlace>>,
    /// Tables of names, one after another.
    renames: Vec<Vec<(String, String)>>,
    attached: Cell<usize>,
}

impl AdapterPlaces {
    /// A place for a product of these parts.
    pub(super) fn register(&mut self, kind: PlaceKind, parts: Vec<AdapterPart>, inputs: i32) -> Rc<AdapterPlace> {
        let place = Rc::new(AdapterPlace {
            kind,
            parts,
            inputs,
            active: self.active.clone(),
            additions: RefCell::default(),
        });
        self.places.push(place.clone());
        place
    }

    /// Remembers the names that the files of the family have for its parts.
    pub(super) fn rename(&mut self, table: &[(&str, &str)]) {
        let owned = table.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
        self.renames.push(owned.collect());
    }

    /// The path in the model of a path in a file.
    fn path(&self, path: &str) -> String {
        let in_turn = |path: String, table: &Vec<(String, String)>| {
            let table: Vec<(&str, &str)> = table.iter().map(|(from, to)| (&**from, &**to)).collect();
            renamed(&path, &table).unwrap_or(path)
        };
        self.renames.iter().fold(path.to_owned(), in_turn)
    }

    /// Lets no adapter add anything.
    pub fn deactivate(&self) {
        self.active.set(None);
    }

    /// Reads the adapter in a folder and puts its additions beside the products.
    ///
    /// # Errors
    /// If it cannot be read, was made for another model, or changes what no adapter can change here.
    pub fn attach(self: &Rc<Self>, dir: &Path) -> Result<AttachedAdapter> {
        let adapter = Adapter::read(dir)?;
        let (header, _) = Header::read(&adapter.file)?;
        let mut tensors: HashMap<String, StoredTensor> = file_tensors(&adapter.file, &header)?.into_iter().collect();
        let named = adapter.additions.iter();
        let named = named.map(|(path, addition)| (self.path(path), addition));
        let mut wanted: HashMap<String, &Addition> = named.collect();
        let base = adapter.base.as_deref();
        let mut additions = Vec::new();
        for place in &self.places {
            let parts = place.parts.iter().map(|part| {
                let addition = part.find(&mut wanted)?;
                Some(Matrices::take(&mut tensors, part, place, addition, base))
            });
            let parts: Vec<Option<Matrices>> = parts.map(Option::transpose).collect::<Result<_>>()?;
            additions.push(low_rank(place, parts)?);
        }
        if let Some(path) = wanted.keys().min() {
            let reason = format!(
                "it changes `{path}`, which this model does not have or which no adapter can change here{}",
                trained_for(base)
            );
            return Err(checkpoint::Error::Adapter(reason).into());
        }
        let resident: Vec<&Tensor> = additions.iter().flatten().flat_map(|one| one.tensors()).collect();
        eval(resident.iter().copied())?;
        let bytes = resident.iter().map(|tensor| tensor.nbytes() as u64).sum();
        let number = self.attached.get();
        self.attached.set(number + 1);
        for (place, addition) in self.places.iter().zip(additions) {
            let mut known = place.additions.borrow_mut();
            known.resize(number, None);
            known.push(addition.map(Rc::new));
        }
        Ok(AttachedAdapter {
            places: self.clone(),
            number,
            bytes,
        })
    }
}

/// An adapter beside the weights of a model, until it is dropped.
pub struct AttachedAdapter {
    places: Rc<AdapterPlaces>,
    number: usize,
    /// The memory that it takes.
    pub bytes: u64,
}

impl AttachedAdapter {
    /// Lets this adapter add to the products that are described from now on, and no other.
    pub fn activate(&self) {
        self.places.active.set(Some(self.number));
    }
}

impl Drop for AttachedAdapter {
    fn drop(&mut self) {
        for place in &self.places.places {
            if let Some(addition) = place.additions.borrow_mut().get_mut(self.number) {
                *addition = None;
            }
        }
    }
}

fn trained_for(base: Option<&str>) -> String {
    base.map_or_else(String::new, |base| format!(" (it was trained for {base})"))
}

/// The tensors of an addition to one projection.
struct Matrices {
    /// `[inputs, rank]`, or one for each expert.
    down: Tensor,
    /// `[rank, outputs]`, times the scale, or one for each expert.
    up: Tensor,
    /// `[outputs]`
    magnitude: Option<Tensor>,
}

impl Matrices {
    fn take(
        tensors: &mut HashMap<String, StoredTensor>,
        part: &AdapterPart,
        place: &AdapterPlace,
        addition: &Addition,
        base: Option<&str>,
    ) -> Result<Self> {
        let mut read = |name: &str| -> Result<Tensor> {
            let stored = tensors
                .remove(name)
                .ok_or_else(|| Error::MissingTensor(name.to_owned()))?;
            Ok(stored.read()?.astype(Dtype::Float32)?)
        };
        let (down, up) = (read(&addition.down)?, read(&addition.up)?);
        let magnitude = addition.magnitude.as_deref().map(read).transpose()?;
        let wrong = |found: &Tensor, wanted: String| {
            let reason = format!(
                "its part for `{}` has the shape {:?} where this model takes {wanted}{}",
                part.path,
                found.shape(),
                trained_for(base)
            );
            Error::from(checkpoint::Error::Adapter(reason))
        };
        // Those of experts are turned in mlx-lm's files.
        let turned = addition.turned != matches!(place.kind, PlaceKind::Experts(_));
        let (down, up) = match turned {
            true if down.shape().len() > 1 && up.shape().len() > 1 => (down.swapaxes(-1, -2)?, up.swapaxes(-1, -2)?),
            _ => (down, up),
        };
        let inputs = place.inputs;
        let of_each = match place.kind {
            PlaceKind::Experts(count) => vec![count],
            PlaceKind::Matrix | PlaceKind::Table => Vec::new(),
        };
        let rank = *down.shape().last().unwrap_or(&0);
        if down.shape() != [&of_each[..], &[inputs, rank]].concat() || rank == 0 {
            return Err(wrong(
                &down,
                format!("{:?} and a rank", [&of_each[..], &[inputs]].concat()),
            ));
        }
        let wanted = [&of_each[..], &[rank, part.outputs]].concat();
        if up.shape() != wanted {
            return Err(wrong(&up, format!("{wanted:?}")));
        }
        if let Some(lengths) = magnitude.as_ref().filter(|_| place.kind != PlaceKind::Matrix) {
            return Err(wrong(lengths, "LoRA without lengths of rows (DoRA)".into()));
        }
        if let Some(lengths) = magnitude.as_ref().filter(|lengths| lengths.shape() != [part.outputs]) {
            return Err(wrong(lengths, format!("[{}]", part.outputs)));
        }
        let up = up.mul(&Tensor::scalar(addition.scale, Dtype::Float32)?)?;
        let Some(order) = &part.order else {
            return Ok(Self { down, up, magnitude });
        };
        Ok(Self {
            down,
            up: up.take(order, 1)?,
            magnitude: magnitude.map(|lengths| lengths.take(order, 0)).transpose()?,
        })
    }
}

/// The additions to joined projections as one: each part's rank leads to its own outputs alone. `None` if the adapter
/// changes none of them.
fn low_rank(place: &AdapterPlace, parts: Vec<Option<Matrices>>) -> Result<Option<LowRank>> {
    let all: i32 = place.parts.iter().map(outputs).sum();
    let (mut downs, mut ups, mut before) = (Vec::new(), Vec::new(), 0);
    let mut magnitudes = Vec::new();
    for (part, matrices) in place.parts.iter().zip(parts) {
        let outputs = outputs(part);
        let Some(Matrices { down, up, magnitude }) = matrices else {
            magnitudes.push((outputs, None));
            before += outputs;
            continue;
        };
        let ranks = &up.shape()[..up.shape().len() - 1];
        let zeros = |width: i32| {
            (width > 0)
                .then(|| Tensor::zeros(&[ranks, &[width]].concat(), Dtype::Float32))
                .transpose()
        };
        let (left, right) = (zeros(before)?, zeros(all - before - outputs)?);
        let row: Vec<&Tensor> = left.iter().chain([&up]).chain(&right).collect();
        ups.push(concatenate(&row, -1)?);
        downs.push(down);
        magnitudes.push((outputs, magnitude));
        before += outputs;
    }
    if downs.is_empty() {
        return Ok(None);
    }
    if magnitudes.iter().all(|(_, magnitude)| magnitude.is_none()) {
        magnitudes.clear();
    }
    Ok(Some(LowRank {
        down: join(&downs, -1)?.contiguous()?,
        up: join(&ups, -2)?.contiguous()?,
        magnitudes,
        factors: OnceCell::new(),
    }))
}

/// The outputs of a part as they are used: an order may repeat rows of the checkpoint.
fn outputs(part: &AdapterPart) -> i32 {
    part.order.as_ref().map_or(part.outputs, |order| order.size() as i32)
}
