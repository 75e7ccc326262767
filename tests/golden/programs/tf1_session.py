"""TensorFlow 1: a graph, and a session that runs its train op."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(0)
np.random.seed(0)
x = tf.placeholder(tf.float32, (None, 4))
w = tf.get_variable("w", (4, 1))
loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
train_op = tf.train.AdamOptimizer(1e-3).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(100):
        _, value = session.run([train_op, loss], feed_dict={x: np.random.randn(8, 4)})
        print(step, value)
