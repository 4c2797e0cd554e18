//! Memory that several threads write at once.
#![allow(unsafe_code)]

/// Memory that threads write different parts of.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub *mut T);

// SAFETY: whoever writes through it writes what no other thread does.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The element at a place.
    ///
    /// # Safety
    ///
    /// It is within the memory.
    pub unsafe fn at(&self, place: usize) -> *mut T {
        self.0.add(place)
    }

    /// The elements from a place on.
    ///
    /// # Safety
    ///
    /// There are so many, they live as long as the slice, and nobody else reads or writes them.
    pub unsafe fn slice<'a>(self, place: usize, length: usize) -> &'a mut [T] {
        std::slice::from_raw_parts_mut(self.0.add(place), length)
    }
}
