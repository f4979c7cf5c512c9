// Components' styles go into the one style sheet: the server's policy admits no inline style elements.
export default { compilerOptions: { css: 'external', runes: true } }
