//! A formula as a flat list of nodes, children before parents.
//!
//! No function recurses over a formula: all walk the list. So deeply nested input cannot overflow the stack.

use crate::assignment::Assignment;
use crate::label::{CategoryId, LabelId, index_newtype};

/// Maximum nesting depth of a formula.
pub const MAX_DEPTH: usize = 256;

/// "The label's category is one of these": the smallest kind of formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Atom {
    label: LabelId,
    categories: Vec<CategoryId>,
}

impl Atom {
    /// `label = category`.
    pub fn new(label: LabelId, category: CategoryId) -> Self {
        Self { label, categories: vec![category] }
    }

    /// `label in {categories}`. Order and repetition do not matter.
    pub fn one_of(label: LabelId, categories: impl IntoIterator<Item = CategoryId>) -> Self {
        let mut categories: Vec<_> = categories.into_iter().collect();
        categories.sort_unstable();
        categories.dedup();
        Self { label, categories }
    }

    /// The label that it is about.
    pub fn label(&self) -> LabelId {
        self.label
    }

    /// The categories that make it true, in ascending order.
    pub fn categories(&self) -> &[CategoryId] {
        &self.categories
    }

    /// The category that makes it true, if there is exactly one.
    pub fn single(&self) -> Option<CategoryId> {
        match self.categories[..] {
            [category] => Some(category),
            _ => None,
        }
    }

    /// Whether it is true for `category`.
    pub fn contains(&self, category: CategoryId) -> bool {
        self.categories.binary_search(&category).is_ok()
    }
}

/// Position of a node in its formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);
index_newtype!(NodeId);

/// The bound on the number of true members of a cardinality formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// `at_least N of {...}`
    AtLeast,
    /// `at_most N of {...}`
    AtMost,
    /// `exactly N of {...}`
    Exactly,
}

impl Bound {
    /// Whether `count` true members satisfy the bound `n`.
    pub fn admits(self, count: usize, n: usize) -> bool {
        match self {
            Bound::AtLeast => count >= n,
            Bound::AtMost => count <= n,
            Bound::Exactly => count == n,
        }
    }
}

/// One operator or atom of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// `true` or `false`
    Constant(bool),
    /// `label = category` or `label in {...}`
    Atom(Atom),
    /// `!a`
    Not(NodeId),
    /// `a & b & c`
    And(Vec<NodeId>),
    /// `a | b | c`
    Or(Vec<NodeId>),
    /// `a xor b xor c`: an odd number of them is true
    Xor(Vec<NodeId>),
    /// `a -> b`
    Implies(NodeId, NodeId),
    /// `a <- b`. It differs from `b -> a`, so that a rule is printed as it was written
    ImpliedBy(NodeId, NodeId),
    /// `a <-> b`
    Iff(NodeId, NodeId),
    /// `at_least N of {...}`, `at_most`, `exactly`
    Count(Bound, usize, Vec<NodeId>),
}

impl Node {
    /// The children of this node.
    pub fn children(&self) -> Vec<NodeId> {
        match self {
            Node::Constant(_) | Node::Atom(_) => Vec::new(),
            Node::Not(child) => vec![*child],
            Node::And(children) | Node::Or(children) | Node::Xor(children) | Node::Count(_, _, children) => {
                children.clone()
            }
            Node::Implies(a, b) | Node::ImpliedBy(a, b) | Node::Iff(a, b) => vec![*a, *b],
        }
    }
}

/// A propositional formula over the categories of a model.
///
/// ```
/// use prsl::model::Atom;
/// use prsl::{Assignment, CategoryId, Formula, LabelId};
///
/// let rain = Formula::atom(Atom::new(LabelId::new(0), CategoryId::new(1)));
/// let wet = Formula::atom(Atom::new(LabelId::new(1), CategoryId::new(1)));
/// let rule = rain.implies(wet);
/// assert!(rule.holds(&Assignment::from_indices([0, 0])));
/// assert!(!rule.holds(&Assignment::from_indices([1, 0])));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Formula {
    nodes: Vec<Node>,
    depth: usize,
}

impl Formula {
    /// `true` or `false`.
    pub fn constant(value: bool) -> Self {
        Self { nodes: vec![Node::Constant(value)], depth: 1 }
    }

    /// An atom as a formula.
    pub fn atom(atom: Atom) -> Self {
        Self { nodes: vec![Node::Atom(atom)], depth: 1 }
    }

    /// `!self`
    #[expect(clippy::should_implement_trait, reason = "a family of builder methods, of which `!` is one")]
    pub fn not(self) -> Self {
        Self::join([self], |children| Node::Not(children[0]))
    }

    /// The conjunction; `true` for no formulas, the formula itself for one.
    pub fn and(formulas: impl IntoIterator<Item = Formula>) -> Self {
        Self::n_ary(formulas, Node::And).unwrap_or_else(|| Self::constant(true))
    }

    /// The disjunction; `false` for no formulas, the formula itself for one.
    pub fn or(formulas: impl IntoIterator<Item = Formula>) -> Self {
        Self::n_ary(formulas, Node::Or).unwrap_or_else(|| Self::constant(false))
    }

    /// True if an odd number of them is true; `false` for no formulas, the formula itself for one.
    pub fn xor(formulas: impl IntoIterator<Item = Formula>) -> Self {
        Self::n_ary(formulas, Node::Xor).unwrap_or_else(|| Self::constant(false))
    }

    /// `self -> then`
    pub fn implies(self, then: Formula) -> Self {
        Self::join([self, then], |children| Node::Implies(children[0], children[1]))
    }

    /// `self <- condition`
    pub fn implied_by(self, condition: Formula) -> Self {
        Self::join([self, condition], |children| Node::ImpliedBy(children[0], children[1]))
    }

    /// `self <-> other`
    pub fn iff(self, other: Formula) -> Self {
        Self::join([self, other], |children| Node::Iff(children[0], children[1]))
    }

    /// `at_least n of {formulas}`, and `at_most`, `exactly`.
    pub fn count(bound: Bound, n: usize, formulas: impl IntoIterator<Item = Formula>) -> Self {
        Self::join(formulas, |children| Node::Count(bound, n, children))
    }

    /// All nodes, children before parents; the last is the formula itself.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of the whole formula.
    pub fn root(&self) -> NodeId {
        NodeId::new(self.nodes.len() - 1)
    }

    /// The nesting depth; an atom has depth 1.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The atoms, in order of appearance.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Atom(atom) => Some(atom),
            _ => None,
        })
    }

    /// The formula whose root is a node.
    pub(crate) fn part(&self, id: NodeId) -> Self {
        // All descendants of a node come directly before it.
        let mut first = id.index();
        while let Some(child) = self.nodes[first].children().first() {
            first = child.index();
        }
        let unshifted = |node: &Node| moved(node.clone(), |index| index - first);
        Self { nodes: self.nodes[first..=id.index()].iter().map(unshifted).collect(), depth: self.depth }
    }

    /// The labels that it is about, each once, in order of appearance.
    pub fn scope(&self) -> Vec<LabelId> {
        let mut scope: Vec<LabelId> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for atom in self.atoms() {
            if seen.insert(atom.label) {
                scope.push(atom.label);
            }
        }
        scope
    }

    /// Whether the formula only counts literals, each about another label: their order does not matter.
    pub(crate) fn is_symmetric(&self) -> bool {
        let root = &self.nodes()[self.root().index()];
        let is_atom = |&node: &NodeId| matches!(self.nodes()[node.index()], Node::Atom(_));
        let is_literal = |node: &NodeId| match &self.nodes()[node.index()] {
            Node::Not(child) => is_atom(child),
            _ => is_atom(node),
        };
        matches!(root, Node::Count(..) | Node::Xor(_))
            && root.children().iter().all(is_literal)
            && self.scope().len() == root.children().len()
    }

    /// Whether the formula is true under an assignment of its model's labels.
    pub fn holds(&self, assignment: &Assignment) -> bool {
        self.holds_at(assignment.indices())
    }

    pub(crate) fn holds_at(&self, assignment: &[usize]) -> bool {
        let mut values: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = |id: &NodeId| values[id.index()];
            let holds = match node {
                Node::Constant(constant) => *constant,
                Node::Atom(atom) => atom.contains(CategoryId::new(assignment[atom.label.index()])),
                Node::Not(child) => !value(child),
                Node::And(children) => children.iter().all(value),
                Node::Or(children) => children.iter().any(value),
                Node::Xor(children) => children.iter().filter(|&id| value(id)).count() % 2 == 1,
                Node::Implies(condition, then) | Node::ImpliedBy(then, condition) => {
                    !value(condition) || value(then)
                }
                Node::Iff(a, b) => value(a) == value(b),
                Node::Count(bound, n, children) => {
                    bound.admits(children.iter().filter(|&id| value(id)).count(), *n)
                }
            };
            values.push(holds);
        }
        values.pop().expect("a formula has at least one node")
    }

    /// The same formula with every atom replaced.
    pub fn try_map_atoms<E>(&self, mut map: impl FnMut(&Atom) -> Result<Atom, E>) -> Result<Self, E> {
        let mut mapped = self.clone();
        for node in &mut mapped.nodes {
            if let Node::Atom(atom) = node {
                *atom = map(atom)?;
            }
        }
        Ok(mapped)
    }

    fn n_ary(
        formulas: impl IntoIterator<Item = Formula>,
        node: impl FnOnce(Vec<NodeId>) -> Node,
    ) -> Option<Self> {
        let mut formulas: Vec<_> = formulas.into_iter().collect();
        match formulas.len() {
            0 => None,
            1 => formulas.pop(),
            _ => Some(Self::join(formulas, node)),
        }
    }

    /// Concatenates the formulas and adds a node above their roots.
    fn join(formulas: impl IntoIterator<Item = Formula>, node: impl FnOnce(Vec<NodeId>) -> Node) -> Self {
        let mut nodes = Vec::new();
        let mut roots = Vec::new();
        let mut depth = 0;
        for formula in formulas {
            depth = depth.max(formula.depth);
            let offset = nodes.len();
            if offset == 0 {
                nodes = formula.nodes;
            } else {
                nodes.extend(formula.nodes.into_iter().map(|node| moved(node, |index| index + offset)));
            }
            roots.push(NodeId::new(nodes.len() - 1));
        }
        nodes.push(node(roots));
        Self { nodes, depth: depth + 1 }
    }
}

/// The node with renumbered children.
fn moved(node: Node, position: impl Fn(usize) -> usize) -> Node {
    let shift = |id: NodeId| NodeId::new(position(id.index()));
    let shift_all = |ids: Vec<NodeId>| ids.into_iter().map(shift).collect();
    match node {
        Node::Constant(_) | Node::Atom(_) => node,
        Node::Not(child) => Node::Not(shift(child)),
        Node::And(children) => Node::And(shift_all(children)),
        Node::Or(children) => Node::Or(shift_all(children)),
        Node::Xor(children) => Node::Xor(shift_all(children)),
        Node::Implies(a, b) => Node::Implies(shift(a), shift(b)),
        Node::ImpliedBy(a, b) => Node::ImpliedBy(shift(a), shift(b)),
        Node::Iff(a, b) => Node::Iff(shift(a), shift(b)),
        Node::Count(bound, n, children) => Node::Count(bound, n, shift_all(children)),
    }
}
