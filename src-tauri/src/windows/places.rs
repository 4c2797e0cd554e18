//! The places of windows: where each was on each display, so that it opens there again. One that was never open on the
//! displays that are connected opens beside the chat window.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use api::WindowName;
use files::Durability;
use serde::{Deserialize, Serialize};
use tauri::{AppHandle, Manager, Monitor, WebviewWindow, WebviewWindowBuilder, Wry};

use crate::windows::open_windows::{name_of, open_window};

/// The height of a title bar, which the size of a window leaves out, in logical pixels.
const TITLE_BAR: f64 = 32.0;
/// The gap between a window and the one beside it.
const GAP: f64 = 12.0;
/// The displays that are remembered for a window.
const DISPLAYS: usize = 8;

/// A rectangle in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Rect {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Rect {
    fn end(self) -> f64 {
        self.x + self.width
    }

    /// The frame of a window moved into an area, and made smaller if it is too large for it.
    fn inside(self, area: Rect) -> Rect {
        let room = (area.height - TITLE_BAR).max(0.0);
        let (width, height) = (self.width.min(area.width), self.height.min(room));
        Rect {
            // No `clamp`: what is left beside a window as large as its area may be less than nothing by a rounding.
            x: self.x.min(area.end() - width).max(area.x),
            y: self.y.min(area.y + room - height).max(area.y),
            width,
            height,
        }
    }

    /// A frame of this size beside that of the chat window, on the side with more room. Without enough room it covers
    /// as little of the chat as it can.
    fn beside(chat: Rect, (width, height): (f64, f64), area: Rect) -> Rect {
        let after = area.end() - chat.end() >= chat.x - area.x;
        let x = if after { chat.end() + GAP } else { chat.x - GAP - width };
        let frame = Rect {
            x,
            y: chat.y,
            width,
            height,
        };
        frame.inside(area)
    }
}

/// A display and the part of it that windows may take.
struct Display {
    name: String,
    area: Rect,
}

impl From<&Monitor> for Display {
    fn from(monitor: &Monitor) -> Self {
        let scale = monitor.scale_factor();
        let area = monitor.work_area();
        let (corner, size) = (
            area.position.to_logical::<f64>(scale),
            area.size.to_logical::<f64>(scale),
        );
        let whole = monitor.size();
        let model = monitor.name().map_or("", String::as_str);
        Self {
            name: format!("{model} {}×{}", whole.width, whole.height),
            area: Rect {
                x: corner.x,
                y: corner.y,
                width: size.width,
                height: size.height,
            },
        }
    }
}

/// The displays, in their order, under names of their own: those of one model have one name.
fn told_apart(mut displays: Vec<Display>) -> Vec<Display> {
    for index in 1..displays.len() {
        let (before, rest) = displays.split_at_mut(index);
        let name = &mut rest[0].name;
        let twins = before
            .iter()
            .filter(|display| display.name.starts_with(name.as_str()))
            .count();
        if twins > 0 {
            *name = format!("{name} ({})", twins + 1);
        }
    }
    displays
}

/// The place of a window on a display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Place {
    display: String,
    /// Its frame when it fills no screen, from the corner of the display's area.
    frame: Option<Rect>,
    maximized: bool,
    full_screen: bool,
}

/// The places of each window, the latest first.
type Known = BTreeMap<String, Vec<Place>>;

/// The remembered places.
pub struct Places {
    file: PathBuf,
    known: Mutex<Known>,
}

impl Places {
    /// Reads them from their file; without a readable one there are none.
    pub fn open(file: PathBuf) -> Self {
        let read = std::fs::read(&file).ok();
        let known = read
            .and_then(|json| serde_json::from_slice(&json).ok())
            .unwrap_or_default();
        Self {
            file,
            known: Mutex::new(known),
        }
    }

    fn note(&self, window: &str, place: Place) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted(known.entry(window.to_owned()).or_default(), place) {
            return;
        }
        let stored = serde_json::to_vec_pretty(&*known).map_err(std::io::Error::from);
        let stored = stored.and_then(|json| files::write_private(&self.file, &json, Durability::ProcessCrash));
        if let Err(error) = stored {
            tracing::warn!("the place of a window is not remembered: {error}");
        }
    }

    fn of(&self, window: &str, displays: &[Display]) -> Option<Place> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(window).and_then(|places| found(places, displays))
    }
}

/// Makes a place the latest of a window; returns whether it was not.
fn noted(places: &mut Vec<Place>, mut place: Place) -> bool {
    if place.frame.is_none() {
        let before = places.iter().find(|before| before.display == place.display);
        place.frame = before.and_then(|before| before.frame);
    }
    if places.first() == Some(&place) {
        return false;
    }
    places.retain(|before| before.display != place.display);
    places.insert(0, place);
    places.truncate(DISPLAYS);
    true
}

/// The latest place on a display that is connected, with its frame inside of that.
fn found(places: &[Place], displays: &[Display]) -> Option<Place> {
    places.iter().find_map(|place| {
        let Display { area, .. } = displays.iter().find(|display| display.name == place.display)?;
        let moved = |frame: Rect| Rect {
            x: frame.x + area.x,
            y: frame.y + area.y,
            ..frame
        };
        Some(Place {
            frame: place.frame.map(|frame| moved(frame).inside(*area)),
            ..place.clone()
        })
    })
}

/// Remembers where a window is now, unless it is hidden. Quick entry has a place of its own.
pub fn note(app: &AppHandle, label: &str) {
    let (Some(name), Some(window)) = (name_of(label), app.get_webview_window(label)) else {
        return;
    };
    match place_of(&window) {
        Ok(Some(place)) if has_place(name) => app.state::<Places>().note(label, place),
        Ok(_) => {}
        Err(error) => tracing::debug!("the place of the {label} window is unknown: {error}"),
    }
}

/// Remembers where all windows are.
pub fn note_all(app: &AppHandle) {
    for name in WindowName::ALL {
        note(app, name.as_str());
    }
}

/// Puts a window that is about to open at its place.
pub fn put<'a, M: Manager<Wry>>(
    app: &AppHandle,
    window: WebviewWindowBuilder<'a, Wry, M>,
    name: WindowName,
    size: (f64, f64),
) -> WebviewWindowBuilder<'a, Wry, M> {
    if !has_place(name) {
        return window;
    }
    let monitors = app.available_monitors().unwrap_or_default();
    let displays = told_apart(monitors.iter().map(Display::from).collect());
    let place = app.state::<Places>().of(name.as_str(), &displays);
    let frame = match &place {
        Some(place) => place.frame,
        None => beside_the_chat(app, name, size),
    };
    let window = match frame {
        Some(Rect { x, y, width, height }) => window.inner_size(width, height).position(x, y),
        None => window,
    };
    match place {
        Some(place) => window.maximized(place.maximized).fullscreen(place.full_screen),
        None => window,
    }
}

fn has_place(name: WindowName) -> bool {
    matches!(name, WindowName::Chat | WindowName::Models | WindowName::Settings)
}

fn beside_the_chat(app: &AppHandle, name: WindowName, size: (f64, f64)) -> Option<Rect> {
    let chat = open_window(app, WindowName::Chat).filter(|_| name != WindowName::Chat)?;
    let place = place_of(&chat).ok()??;
    let display = Display::from(&chat.current_monitor().ok()??);
    let frame = match place.frame {
        Some(frame) => Rect {
            x: frame.x + display.area.x,
            y: frame.y + display.area.y,
            ..frame
        },
        None => display.area,
    };
    Some(Rect::beside(frame, size, display.area))
}

/// The place of a window; `None` if it is hidden.
fn place_of(window: &WebviewWindow) -> tauri::Result<Option<Place>> {
    if !window.is_visible()? || window.is_minimized()? {
        return Ok(None);
    }
    let monitors = window.available_monitors()?;
    let here = window.current_monitor()?;
    let index = here.and_then(|here| {
        monitors
            .iter()
            .position(|monitor| monitor.position() == here.position())
    });
    let displays = told_apart(monitors.iter().map(Display::from).collect());
    let Some(Display { name, area }) = index.and_then(|index| displays.into_iter().nth(index)) else {
        return Ok(None);
    };
    let (maximized, full_screen) = (window.is_maximized()?, window.is_fullscreen()?);
    let scale = window.scale_factor()?;
    let corner = window.outer_position()?.to_logical::<f64>(scale);
    let size = window.inner_size()?.to_logical::<f64>(scale);
    let frame = Rect {
        x: corner.x - area.x,
        y: corner.y - area.y,
        width: size.width,
        height: size.height,
    };
    Ok(Some(Place {
        display: name,
        frame: (!maximized && !full_screen).then_some(frame),
        maximized,
        full_screen,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAPTOP: Rect = Rect {
        x: 0.0,
        y: 25.0,
        width: 1440.0,
        height: 840.0,
    };
    const LARGE: Rect = Rect {
        x: 1440.0,
        y: 0.0,
        width: 2560.0,
        height: 1400.0,
    };

    fn display(name: &str, area: Rect) -> Display {
        Display {
            name: name.to_owned(),
            area,
        }
    }

    fn at(display: &str, x: f64, y: f64) -> Place {
        Place {
            display: display.to_owned(),
            frame: Some(Rect {
                x,
                y,
                width: 900.0,
                height: 640.0,
            }),
            maximized: false,
            full_screen: false,
        }
    }

    fn corner(place: Option<Place>) -> Option<(f64, f64)> {
        place.and_then(|place| place.frame).map(|frame| (frame.x, frame.y))
    }

    #[test]
    fn a_window_is_where_it_was_on_each_display() {
        let mut places = Vec::new();
        assert!(noted(&mut places, at("laptop", 100.0, 50.0)));
        assert!(!noted(&mut places, at("laptop", 100.0, 50.0)), "nothing is new");
        assert!(noted(&mut places, at("large", 300.0, 70.0)));
        let both = [display("laptop", LAPTOP), display("large", LARGE)];
        assert_eq!(
            corner(found(&places, &both)),
            Some((1740.0, 70.0)),
            "the latest of them"
        );
        assert_eq!(
            corner(found(&places, &both[..1])),
            Some((100.0, 75.0)),
            "the other is unplugged"
        );
        // The display stands elsewhere by now, and the place on it is the same.
        let moved = [display("large", Rect { x: -2560.0, ..LARGE })];
        assert_eq!(corner(found(&places, &moved)), Some((-2260.0, 70.0)));
        assert_eq!(found(&places, &[display("unknown", LAPTOP)]), None);
        // One that fills the screen keeps the frame that it goes back to.
        let filled = Place {
            frame: None,
            maximized: true,
            ..at("large", 0.0, 0.0)
        };
        assert!(noted(&mut places, filled));
        let place = found(&places, &both).expect("a place");
        assert!(place.maximized);
        assert_eq!(corner(Some(place)), Some((1740.0, 70.0)));
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn a_window_as_large_as_its_display_begins_where_that_does() {
        // 0.1 + 1440 - 1440 is less than 0.1.
        let area = Rect {
            x: 0.1,
            y: 0.1,
            ..LAPTOP
        };
        let large = Rect {
            width: 3000.0,
            height: 3000.0,
            ..LARGE
        };
        let inside = large.inside(area);
        assert_eq!(
            (inside.x, inside.y, inside.width, inside.height),
            (0.1, 0.1, 1440.0, 808.0)
        );
        let low = Rect { height: 20.0, ..area };
        assert_eq!(large.inside(low).height, 0.0);
    }

    #[test]
    fn displays_of_one_model_are_told_apart_by_their_order() {
        let names = ["large", "laptop", "large", "large"].map(|name| display(name, LARGE));
        let told: Vec<String> = told_apart(names.into())
            .into_iter()
            .map(|display| display.name)
            .collect();
        assert_eq!(told, ["large", "laptop", "large (2)", "large (3)"]);
    }

    #[test]
    fn places_are_read_again_and_a_broken_file_holds_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("windows.json");
        Places::open(file.clone()).note("models", at("laptop", 10.0, 20.0));
        let displays = [display("laptop", LAPTOP)];
        let again = Places::open(file.clone());
        assert_eq!(corner(again.of("models", &displays)), Some((10.0, 45.0)));
        assert_eq!(again.of("settings", &displays), None);
        // The form of an earlier version.
        std::fs::write(&file, r#"{"models":{"width":900,"height":640,"x":1,"y":2}}"#).expect("written");
        assert_eq!(Places::open(file).of("models", &displays), None);
    }

    #[test]
    fn a_window_opens_beside_the_chat_if_there_is_room_and_covers_little_of_it_otherwise() {
        let chat = |x: f64, width: f64| Rect {
            x,
            y: 100.0,
            width,
            height: 700.0,
        };
        let size = (760.0, 620.0);
        let left = Rect::beside(chat(1440.0, 1180.0), size, LARGE);
        assert_eq!((left.x, left.y, left.width), (2632.0, 100.0, 760.0), "after it");
        let right = Rect::beside(chat(2700.0, 1180.0), size, LARGE);
        assert_eq!(right.x, 2700.0 - 12.0 - 760.0, "before it");
        let narrow = Rect::beside(chat(40.0, 1180.0), size, LAPTOP);
        assert_eq!(narrow.end(), LAPTOP.end(), "at the edge of the display");
        let small = Rect {
            x: 0.0,
            y: 0.0,
            width: 640.0,
            height: 480.0,
        };
        let shrunk = Rect::beside(small, size, small);
        assert_eq!(
            (shrunk.x, shrunk.width, shrunk.y, shrunk.height),
            (0.0, 640.0, 0.0, 448.0)
        );
    }
}
