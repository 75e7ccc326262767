"""TensorFlow: a loop with a gradient tape and a compiled step."""

import tensorflow as tf

tf.random.set_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
loss_of = tf.keras.losses.MeanSquaredError()
metric = tf.keras.metrics.Mean()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    metric.update_state(loss)
    return loss


data = tf.data.Dataset.from_tensor_slices((tf.zeros((64, 4)), tf.zeros((64, 1)))).batch(8)
for epoch in range(3):
    metric.reset_state()
    for x, y in data:
        loss = step(x, y)
    print(epoch, metric.result().numpy())
