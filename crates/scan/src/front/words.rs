//! What single words mean to the lexer and parser: keywords of C and the names of the idiom table.

use rustc_hash::FxHashMap;

/// The class of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Word {
    #[default]
    Plain,
    /// Dropped by the lexer.
    Attribute,
    /// Dropped together with the parentheses after it.
    AttributeCall,
    /// A macro that mentions this word is worth looking into.
    Sync,
    If,
    Else,
    For,
    While,
    Do,
    Switch,
    Case,
    Default,
    Break,
    Continue,
    Return,
    Goto,
    Asm,
    Sizeof,
    Typeof,
    Struct,
    Union,
    Enum,
    Typedef,
    Extern,
    Static,
    Inline,
    /// `const`, `volatile` and their like.
    Qualifier,
    /// `int`, `unsigned` and their like.
    Builtin,
}

const KEYWORDS: &[(&str, Word)] = &[
    ("if", Word::If),
    ("else", Word::Else),
    ("for", Word::For),
    ("while", Word::While),
    ("do", Word::Do),
    ("switch", Word::Switch),
    ("case", Word::Case),
    ("default", Word::Default),
    ("break", Word::Break),
    ("continue", Word::Continue),
    ("return", Word::Return),
    ("goto", Word::Goto),
    ("asm", Word::Asm),
    ("__asm__", Word::Asm),
    ("__asm", Word::Asm),
    ("sizeof", Word::Sizeof),
    ("_Alignof", Word::Sizeof),
    ("__alignof__", Word::Sizeof),
    ("typeof", Word::Typeof),
    ("__typeof__", Word::Typeof),
    ("__typeof", Word::Typeof),
    ("struct", Word::Struct),
    ("union", Word::Union),
    ("enum", Word::Enum),
    ("typedef", Word::Typedef),
    ("extern", Word::Extern),
    ("static", Word::Static),
    ("STATIC", Word::Static),
    ("inline", Word::Inline),
    ("__inline", Word::Inline),
    ("__inline__", Word::Inline),
    ("__always_inline", Word::Inline),
    ("register", Word::Qualifier),
    ("auto", Word::Qualifier),
    ("const", Word::Qualifier),
    ("volatile", Word::Qualifier),
    ("restrict", Word::Qualifier),
    ("__const", Word::Qualifier),
    ("__volatile__", Word::Qualifier),
    ("__restrict", Word::Qualifier),
    ("_Thread_local", Word::Qualifier),
    ("__thread", Word::Qualifier),
    ("_Noreturn", Word::Qualifier),
    ("void", Word::Builtin),
    ("char", Word::Builtin),
    ("short", Word::Builtin),
    ("int", Word::Builtin),
    ("long", Word::Builtin),
    ("float", Word::Builtin),
    ("double", Word::Builtin),
    ("signed", Word::Builtin),
    ("__signed__", Word::Builtin),
    ("unsigned", Word::Builtin),
    ("_Bool", Word::Builtin),
    ("bool", Word::Builtin),
    ("__int128", Word::Builtin),
    ("_Atomic", Word::Qualifier),
];

/// The table from spelling to class.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words(FxHashMap<Vec<u8>, Word>);

impl Words {
    /// Keywords of C, plus attribute words, attribute calls and the names that make a macro interesting.
    pub(crate) fn new<'a>(
        attributes: impl IntoIterator<Item = &'a str>,
        attribute_calls: impl IntoIterator<Item = &'a str>,
        sync: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut table = FxHashMap::default();
        let mut add = |names: &mut dyn Iterator<Item = &'a str>, word| {
            for name in names {
                table.insert(name.as_bytes().to_vec(), word);
            }
        };
        add(&mut sync.into_iter(), Word::Sync);
        add(&mut attributes.into_iter(), Word::Attribute);
        add(&mut attribute_calls.into_iter(), Word::AttributeCall);
        for (name, word) in KEYWORDS {
            table.insert(name.as_bytes().to_vec(), *word);
        }
        Self(table)
    }

    /// The class of `text`.
    pub(crate) fn of(&self, text: &[u8]) -> Word {
        self.0.get(text).copied().unwrap_or_default()
    }
}
