export const View = () => <b>{1}</b>;
