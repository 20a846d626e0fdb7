//! Inputs that are made to fill memory or time.

/// Each of them.
pub fn all() -> Vec<Vec<u8>> {
    let megabytes = |n: usize| "x".repeat(n << 20);
    vec![
        format!("version: 1\ngroup: {}\n", megabytes(50)).into_bytes(),
        format!("version: 1\ngroup: '{}'\n", megabytes(50)).into_bytes(),
        format!("version: 1\ngroup: |\n  {}\n", megabytes(50)).into_bytes(),
        format!("{}: 1\n", megabytes(50)).into_bytes(),
        format!("group: '{}'\n", "${X}".repeat(1 << 20)).into_bytes(),
        "[".repeat(1 << 20).into_bytes(),
        "{a: ".repeat(1 << 18).into_bytes(),
        "- ".repeat(1 << 20).into_bytes(),
        (0..20_000)
            .map(|depth| format!("{}a:\n", " ".repeat(depth % 2000)))
            .collect::<String>()
            .into_bytes(),
        "a: 1\n".repeat(1 << 17).into_bytes(),
        bomb(b"&a [x,x,x,x,x,x,x,x,x,x]", 30),
        bomb(b"&a {k: x}", 30),
        merges(),
        format!(
            "routes: {{ r: {{ topics: {{ include: ['{}'] }} }} }}\n",
            "(a|b)".repeat(200_000)
        )
        .into_bytes(),
        "a: \"\\".repeat(1 << 18).into_bytes(),
        vec![0; 8 << 20],
        vec![0xff; 8 << 20],
    ]
}

/// Lists of which each holds the one before ten times.
fn bomb(first: &[u8], levels: usize) -> Vec<u8> {
    let mut text = format!(
        "l0: {}\n",
        String::from_utf8_lossy(first).replacen("&a", "&a0", 1)
    );
    for level in 1..levels {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("l{level}: &a{level} [{before}]\n");
    }
    text.into_bytes()
}

/// Maps of which each merges the one before twice.
fn merges() -> Vec<u8> {
    let mut text = String::from("m0: &m0 { k0: x }\n");
    for level in 1..40 {
        let before = level - 1;
        text += &format!("m{level}: &m{level} {{ <<: [*m{before}, *m{before}], k{level}: x }}\n");
    }
    text.into_bytes()
}
