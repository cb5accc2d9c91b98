#[derive(Debug)]
pub struct P { x: i32 }
impl<T> P<T> {
    /// doc
    #[inline]
    fn new() {
        fn inner() {}
    }
}
mod m { pub const C: u8 = 1; }
macro_rules! mac { () => {} }
trait Tr { fn sig(&self); }
