//! A snapshot of the public items of the library, so that every change of the interface is reviewed.
//!
//! The test reads the sources. It lists the names at the crate's root and in each public module. For every public
//! type it lists the fields or variants, and the methods.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, Ident, ImplItem, Item, TraitItem, UseTree, Visibility, parse_quote};

/// Maximum number of names at the root, public modules included.
const MAX_ROOT_NAMES: usize = 41;

#[test]
fn public_items() {
    let library = Library::read();
    let root = library.names(&library.root);
    assert!(root.len() <= MAX_ROOT_NAMES, "{} names at the root: {root:?}", root.len());
    let mut text = String::new();
    let mut exported = root.clone();
    list(&mut text, "prsl", &root);
    for module in library.public_modules() {
        let names = library.names(&library.files[&module]);
        list(&mut text, &format!("prsl::{module}"), &names);
        exported.extend(names);
    }
    for name in exported {
        for (kind, members) in library.definitions.get(&name).into_iter().flatten() {
            let _ = writeln!(text, "\n{kind} {name}");
            let methods = library.methods.get(&name).into_iter().flatten();
            members.iter().chain(methods).for_each(|member| text.push_str(&format!("    {member}\n")));
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
}

fn list(text: &mut String, heading: &str, names: &BTreeSet<String>) {
    let _ = writeln!(text, "\n{heading}");
    names.iter().for_each(|name| text.push_str(&format!("    {name}\n")));
}

/// The parsed sources.
struct Library {
    root: syn::File,
    /// The file of every top-level module.
    files: BTreeMap<String, syn::File>,
    /// Every public item by its name: its kind, and its fields, variants or signature.
    definitions: BTreeMap<String, Vec<(&'static str, Vec<String>)>>,
    /// Signatures of the public methods of every type.
    methods: BTreeMap<String, BTreeSet<String>>,
}

impl Library {
    fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let root = parse(&folder.join("lib.rs"));
        let (definitions, methods) = Default::default();
        let mut library = Self { root, files: BTreeMap::new(), definitions, methods };
        for path in sources(&folder) {
            let file = parse(&path);
            file.items.iter().filter(|item| !is_test(item)).for_each(|item| library.add(item));
            let relative = path.strip_prefix(&folder).expect("it is below the root");
            let relative = relative.with_extension("");
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            match &parts[..] {
                [module] => library.files.insert(module.clone(), file),
                [module, file_name] if file_name == "mod" => library.files.insert(module.clone(), file),
                _ => None,
            };
        }
        library
    }

    /// The public modules, in order.
    fn public_modules(&self) -> Vec<String> {
        let modules = self.root.items.iter().filter_map(|item| match item {
            Item::Mod(module) if is_public(&module.vis) => Some(module.ident.to_string()),
            _ => None,
        });
        modules.collect()
    }

    /// The names that a file makes public: its own items, its modules and what it re-exports.
    fn names(&self, file: &syn::File) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for item in file.items.iter().filter(|item| !is_test(item)) {
            match item {
                Item::Use(item) if is_public(&item.vis) => used(&item.tree, &mut names),
                Item::Mod(item) if is_public(&item.vis) => {
                    names.insert(item.ident.to_string());
                }
                item => names.extend(definition(item).map(|(_, name, _)| name)),
            }
        }
        names
    }

    fn add(&mut self, item: &Item) {
        if let Some((kind, name, members)) = definition(item) {
            self.definitions.entry(name).or_default().push((kind, members));
        }
        let Item::Impl(block) = item else { return };
        let syn::Type::Path(of) = &*block.self_ty else { return };
        let Some(name) = of.path.segments.last().map(|segment| segment.ident.to_string()) else { return };
        if block.trait_.is_some() {
            return;
        }
        for member in &block.items {
            let signature = match member {
                ImplItem::Fn(method) if is_public(&method.vis) => signature(&method.sig),
                ImplItem::Const(constant) if is_public(&constant.vis) => {
                    format!("const {}: {}", constant.ident, type_text(&constant.ty))
                }
                _ => continue,
            };
            self.methods.entry(name.clone()).or_default().insert(signature);
        }
    }
}

fn parse(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).expect("a readable source");
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(item: &Item) -> bool {
    let is_test =
        |it: &Attribute| it.path().is_ident("cfg") && it.parse_args::<Ident>().is_ok_and(|of| of == "test");
    matches!(item, Item::Mod(module) if module.attrs.iter().any(is_test))
}

/// Kind, name and members of a public item that is neither a module nor a re-export.
fn definition(item: &Item) -> Option<(&'static str, String, Vec<String>)> {
    let (visibility, kind, name, members) = match item {
        Item::Struct(item) => (&item.vis, "struct", &item.ident, fields(&item.fields)),
        Item::Enum(item) => {
            let variants = item.variants.iter().map(|variant| {
                let fields = all_fields(&variant.fields);
                let list = fields.join(", ");
                match variant.fields {
                    Fields::Unit => variant.ident.to_string(),
                    Fields::Named(_) => format!("{} {{ {list} }}", variant.ident),
                    Fields::Unnamed(_) => format!("{}({list})", variant.ident),
                }
            });
            (&item.vis, "enum", &item.ident, variants.collect())
        }
        Item::Trait(item) => {
            let methods = item.items.iter().filter_map(|member| match member {
                TraitItem::Fn(method) => Some(signature(&method.sig)),
                _ => None,
            });
            (&item.vis, "trait", &item.ident, methods.collect())
        }
        Item::Fn(item) => (&item.vis, "function", &item.sig.ident, vec![signature(&item.sig)]),
        Item::Const(item) => (&item.vis, "constant", &item.ident, vec![type_text(&item.ty)]),
        Item::Type(item) => (&item.vis, "type", &item.ident, vec![type_text(&item.ty)]),
        _ => return None,
    };
    is_public(visibility).then(|| (kind, name.to_string(), members))
}

/// The public fields of a struct.
fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    public.map(field).collect()
}

/// All fields of a variant.
fn all_fields(fields: &Fields) -> Vec<String> {
    fields.iter().map(field).collect()
}

fn field(field: &syn::Field) -> String {
    match &field.ident {
        Some(name) => format!("{name}: {}", type_text(&field.ty)),
        None => type_text(&field.ty),
    }
}

/// The names that a `use` declaration brings in.
fn used(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Name(name) => {
            names.insert(name.ident.to_string());
        }
        UseTree::Rename(rename) => {
            names.insert(rename.rename.to_string());
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, names)),
        UseTree::Glob(_) => panic!("a re-export of everything hides what is public"),
    }
}

/// A signature on one line.
fn signature(signature: &syn::Signature) -> String {
    let text = on_one_line(parse_quote!(#signature {}));
    text.trim_end_matches("{}").trim_end().to_owned()
}

/// A type on one line.
fn type_text(of: &syn::Type) -> String {
    let text = on_one_line(parse_quote!(type T = #of;));
    text.trim_start_matches("type T = ").trim_end_matches(';').to_owned()
}

fn on_one_line(item: Item) -> String {
    let file = syn::File { shebang: None, attrs: Vec::new(), items: vec![item] };
    let text = prettyplease::unparse(&file).split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("( ", "(").replace(", )", ")")
}
